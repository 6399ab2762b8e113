"""Fuzzed events and files, each in a process of its own: no hang, no dead worker, no wrong row."""
