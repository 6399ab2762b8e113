"""Dumps replayed, and stored columns filled."""
