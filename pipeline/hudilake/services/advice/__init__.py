"""Layouts proposed for a table, from the ranges of its columns and from the queries that read it."""
