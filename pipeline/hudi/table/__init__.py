"""An open table: its state, and the way to write to it."""
