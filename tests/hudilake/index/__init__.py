"""Indexes that are looked up, against a dict."""
