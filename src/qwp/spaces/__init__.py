"""Words and their vectors: reading and writing, normalisation, order of frequency, dictionaries."""
