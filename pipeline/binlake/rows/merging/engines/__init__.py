"""Merge engines: what events make of a row where the newest event does not simply replace it."""
