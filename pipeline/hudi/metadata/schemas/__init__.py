"""Avro schemas, package data."""
