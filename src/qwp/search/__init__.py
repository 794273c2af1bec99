"""Retrieval of translations in a common space, exact or approximate, and the confidence of each."""
