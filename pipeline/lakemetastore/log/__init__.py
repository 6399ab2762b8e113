"""A log of versions appended by compare-and-swap, its snapshots, and the cached state that they give."""
