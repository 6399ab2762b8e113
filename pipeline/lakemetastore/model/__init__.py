"""Databases, tables and partitions as values, and the errors of the catalog."""
