"""The changes of single rows: every version of a row and where it comes from, and transactions that are undone."""
