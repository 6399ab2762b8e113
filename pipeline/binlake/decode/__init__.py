"""Bytes -> change batches: message formats, MySQL types, schemas, DDL, bad input. No Spark, Kafka, tables."""
