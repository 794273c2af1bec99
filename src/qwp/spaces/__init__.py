"""Embeddings and dictionaries: reading and writing files, normalisation, order of frequency."""
