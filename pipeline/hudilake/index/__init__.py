"""Indexes that are looked up: which file group holds the row of a record key."""
