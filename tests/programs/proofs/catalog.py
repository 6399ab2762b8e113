"""The parts of the proofs."""

from __future__ import annotations

from tests.programs.proofs.part import Part

PARTS: tuple[Part, ...] = ()
