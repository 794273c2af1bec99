"""The same language at two times: which words moved."""
