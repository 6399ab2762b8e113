"""The kinds of lake tables: how rows reach the files of a table of each kind."""
