"""Calls from Python, counted: they do not depend on the machine as seconds do.

Nothing is collected meanwhile: a collection calls finalizers and callbacks (Hypothesis has one), and when it comes
depends on what was allocated before. ``calls_an_item`` does the work once before it counts: what is imported or cached
at first use costs nothing then.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


def counted(work: Callable[[], T]) -> tuple[T, int]:
    """What the work gives, and the calls it takes, of Python's functions and of others."""
    calls = 0

    def note(frame: FrameType, what: str, argument: object) -> None:
        nonlocal calls
        calls += what in ("call", "c_call")

    collects = gc.isenabled()
    gc.disable()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return work(), calls
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()


def calls_an_item(work: Callable[[int], object], few: int, many: int) -> float:
    """The calls that each further item takes; what the work takes anyhow falls out.

    Args:
        work: over so many items.
        few, many: numbers of items, few < many.
    """
    work(few)
    (_, least), (_, most) = counted(lambda: work(few)), counted(lambda: work(many))
    return (most - least) / (many - few)
