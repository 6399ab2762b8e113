"""DDL as pure rules: the statements known, whose rows are whose, verdicts, restated rows. No tables are opened."""
