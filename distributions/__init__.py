"""The distributions hudilake and lakemetastore: what is installed of the source root besides binlake."""
