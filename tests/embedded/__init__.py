"""Tests of the embedded services."""
