"""Features and labels from two streams, joined in one table, read for training."""
