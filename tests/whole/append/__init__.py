"""Append tables: rows without a key, added and never changed."""
