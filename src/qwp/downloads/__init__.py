"""Public vectors and dictionaries: where they are, getting them when asked to, and finding them again."""
