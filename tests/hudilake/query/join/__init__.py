"""Bucketed tables joined and aggregated."""
