"""The order of rows in base files: pure functions over Arrow."""
