"""The results of a fit: alignments with their translator and lexicon, saved files and checkpoints."""
