"""The files of a table: base files, log files, HFiles, their names; reading and writing of file groups."""
