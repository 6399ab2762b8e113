"""Parsing of DDL statements from their text: tokens, columns, constants, clauses."""
