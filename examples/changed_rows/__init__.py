"""The rows of a table that differ between two moments, by a join of the table with itself."""
