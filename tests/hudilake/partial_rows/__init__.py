"""Partial rows: written, merged, compacted and skipped by, against a model and both judges."""
