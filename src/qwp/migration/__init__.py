"""Migration of vector stores: maps from one embedding model to another, measured, and applied to stores in a stream."""
