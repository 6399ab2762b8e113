"""Spark's AUTO CDC beside binlake: processor time of the same events as newest rows and as versions."""
