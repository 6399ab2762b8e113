"""Filters: their values, their parsers, and their evaluation on rows and on files."""
