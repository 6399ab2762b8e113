"""The files of a table: base files, log files, HFiles, their names, and what writes and reads file groups."""
