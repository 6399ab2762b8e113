"""What a Hudi table is in bytes: its definition, its files, their order, its timeline."""
