"""DDL as pure rules: the known statements, the owners of rows, verdicts, restated rows. No tables are opened."""
