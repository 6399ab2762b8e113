"""HFiles, in which Hudi's metadata table keeps its records: layout, reader and writer."""
