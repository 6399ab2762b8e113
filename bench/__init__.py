"""Measurements: ratios within one run, never timed unit tests."""
