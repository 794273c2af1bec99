"""Showing things to people: text made harmless, standard error, how far a run is, pieces of HTML."""
