"""Maps between two spaces: from matched rows, by transport between coresets, and by refinement."""
