"""Tests of the metadata table."""
