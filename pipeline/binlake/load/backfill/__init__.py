"""Columns of rows that the table has already, filled from files, queries and frames."""
