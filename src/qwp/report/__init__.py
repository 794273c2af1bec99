"""Pages about a result."""
