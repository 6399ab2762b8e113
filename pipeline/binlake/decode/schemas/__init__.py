"""Schemas of source tables: their history, and their use for typing a chunk's rows."""
