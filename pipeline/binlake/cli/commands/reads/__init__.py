"""Commands that read tables and change nothing: queries, what a table is, where a row comes from, cells of a store."""
