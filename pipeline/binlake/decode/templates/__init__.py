"""The fast decoder: a template reads messages that look alike, values and rows in one pass."""
