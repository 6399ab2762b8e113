"""Queries over tables: SQL, and joins bucket by bucket."""

from hudilake.extras import require_extra

require_extra("hudilake", "sql", "duckdb", "sqlglot")
