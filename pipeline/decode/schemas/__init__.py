"""Schemas of source tables: their history, and how a chunk's rows are typed by them."""
