"""Exclusion of several writers of a table: the table's lock, and the heartbeats of instants."""
