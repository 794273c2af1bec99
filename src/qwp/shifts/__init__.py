"""Semantic shift: the same language at two times, and the words that moved."""
