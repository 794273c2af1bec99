"""What a fit leaves behind: the alignment of two languages or of several, saved files, checkpoints."""
