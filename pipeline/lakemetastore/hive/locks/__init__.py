"""Locks that clients take for their own commits, kept in a log of the store, so that all processes know them."""
