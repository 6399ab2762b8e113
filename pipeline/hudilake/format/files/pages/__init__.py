"""Row groups and pages of a Parquet file: what its footer and page index say of them, and some of them read."""
