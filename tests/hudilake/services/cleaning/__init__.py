"""Tests of cleaning and savepoints."""
