"""Elapsed time that passes when a test says so: what must happen in time happens so on a busy machine, too."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudilake.locking import elapsed


class ElapsedClock:
    """What locks and heartbeats take for elapsed time, in seconds. Files and threads keep the machine's time."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now_s = 1_000_000.0
        patch.setattr(elapsed, "monotonic_s", lambda: self.now_s)
        patch.setattr(elapsed, "now_ms", lambda: int(self.now_s * 1000))
        patch.setattr(elapsed.Moment, "__init__", self._begin)

    @property
    def _begin(self) -> Callable[[elapsed.Moment], None]:
        def begin(moment: elapsed.Moment) -> None:
            object.__setattr__(moment, "monotonic", self.now_s)
            object.__setattr__(moment, "wall_ms", int(self.now_s * 1000))

        return begin

    def advance(self, seconds: float) -> None:
        """So much time passes."""
        self.now_s += seconds
