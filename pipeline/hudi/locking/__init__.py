"""Keeping several writers of a table apart: its lock, and the heartbeats of instants."""
