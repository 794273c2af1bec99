"""The explorer: pages of a local server on which finished alignments are looked at, searched and corrected."""
