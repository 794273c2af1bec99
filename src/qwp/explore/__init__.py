"""The explorer: a local server whose pages show, search and correct finished alignments."""
