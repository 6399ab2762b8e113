"""The three distributions: what they need, what is in them, and each of them alone."""
