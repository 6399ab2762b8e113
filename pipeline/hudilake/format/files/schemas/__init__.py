"""Avro schemas of log blocks, as Hudi 1.2.0 writes them."""
