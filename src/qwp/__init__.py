"""qwp: put two word-embedding spaces into one, with no dictionary, and say how well it went."""

__version__ = "0.1.0"
