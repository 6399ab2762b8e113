"""Page views in an append table, laid out for the queries that read it."""
