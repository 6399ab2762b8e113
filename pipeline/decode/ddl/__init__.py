"""DDL statements read as text: tokens, columns, constants, clauses."""
