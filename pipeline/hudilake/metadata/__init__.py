"""The metadata table: files, column statistics, bloom filters and partition statistics of a data table."""
