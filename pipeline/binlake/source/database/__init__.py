"""The source's server: sessions, snapshots with their position, tables, values, and the limit of rows a second."""
