"""The command line: one file a command, each a thin layer over the library."""
