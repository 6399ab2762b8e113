"""The lake against the live source at one position of the binlog: what differs is found, named and repaired."""
