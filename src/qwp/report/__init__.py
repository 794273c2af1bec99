"""Reports: self-contained pages about an alignment."""
