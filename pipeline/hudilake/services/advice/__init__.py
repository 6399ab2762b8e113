"""Layouts proposed for a table, from the ranges of its columns and from the queries that read it."""

from hudilake.extras import require_extra

require_extra("hudilake", "sql", "duckdb", "sqlglot")
