"""Command lines of other tools, run by the methods of this program."""
