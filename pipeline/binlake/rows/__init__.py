"""Change batches to rows of file groups."""
