"""Base files made of base files: rows merged in key order and written row group by row group."""
