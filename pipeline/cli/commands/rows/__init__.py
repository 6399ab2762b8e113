"""Commands about single rows: why a row is as it is, and transactions that are undone."""
