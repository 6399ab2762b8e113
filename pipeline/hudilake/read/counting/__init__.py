"""Rows that are counted and not read: by the metadata table."""
