"""Tests of the archival of the table's timeline."""
