"""Measurements: ratios taken in one run, never timed unit tests."""
