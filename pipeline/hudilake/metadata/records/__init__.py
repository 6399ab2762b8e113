"""The records of the metadata table: keys, encoding, and the file groups that hold them."""
