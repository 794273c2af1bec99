"""Maps between two spaces: orthogonal and re-weighted maps of matched rows, known pairs, spaces of different width."""
