"""Proofs by what others wrote: ``python -m tests.programs.proofs`` (``make proofs``).

A *part* (``part.py``) has inputs that nobody here wrote, and gives a *verdict* for each. Verdicts are kept as JSON
lines, so that a run goes on where the last one ended; ``docs/proofs.md`` is made of them. A new part is an object in
``catalog.py``.
"""
