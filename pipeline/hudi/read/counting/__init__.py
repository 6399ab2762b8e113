"""Rows that are counted and not read: by the metadata table, and the SQL that asks for no more."""
