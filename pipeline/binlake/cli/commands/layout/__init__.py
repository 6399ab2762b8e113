"""Commands about the order of rows in base files."""
