"""The model of a commit (``docs/model``), checked by TLC: ``python -m tests.programs.proofs model``.

``cases`` are the histories that are explored, and which of them breaks without which guard; ``locks`` are those of
locks and heartbeats. ``tools`` finds TLC.
"""
