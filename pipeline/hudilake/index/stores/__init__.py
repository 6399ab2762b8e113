"""Key-value stores for the external index."""
