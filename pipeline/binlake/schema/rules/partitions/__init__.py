"""Partitions of source tables: which rows a statement about a partition removes."""
