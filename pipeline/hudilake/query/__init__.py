"""Queries over tables: SQL, and joins bucket by bucket."""
