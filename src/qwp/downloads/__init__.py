"""Public vectors and dictionaries: the catalogue, downloads, and the folder of downloaded files."""
