"""Sums over a table that follow each commit, worked out from its changes alone."""
