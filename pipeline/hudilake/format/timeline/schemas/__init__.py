"""Avro schemas of the timeline's files, as Hudi 1.2.0 writes them."""
