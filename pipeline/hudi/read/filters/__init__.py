"""Filters: what they are, where they come from, what they say of rows and of files."""
