"""Commands about rows: why a row is as it is, transactions that are undone, columns that are filled."""
