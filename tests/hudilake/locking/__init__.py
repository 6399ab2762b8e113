"""Tests of the table's lock and the heartbeats."""
