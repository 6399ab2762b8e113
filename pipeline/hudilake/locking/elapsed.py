"""Elapsed time that includes pauses of the process or the machine, and how long something was seen unchanged.

It stands alone: locks and heartbeats both measure by it, and neither imports the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hudilake.clock import monotonic_s, now_ms


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of this process. The monotonic clock stops while a machine sleeps, the wall clock may be set back: the
    larger of the two differences is used."""

    monotonic: float = field(default_factory=monotonic_s)
    wall_ms: int = field(default_factory=now_ms)

    def age_s(self) -> float:
        """Seconds since then."""
        return max(monotonic_s() - self.monotonic, (now_ms() - self.wall_ms) / 1000)


class Watch:
    """How long this process has seen one thing unchanged, by its monotonic clock alone: the clocks of two machines may
    be hours apart."""

    def __init__(self) -> None:
        self._state: object = None
        self._since_s = 0.0

    def unchanged_s(self, state: object) -> float:
        """Seconds since ``state`` was first seen, without another one in between."""
        if state != self._state:
            self._state, self._since_s = state, monotonic_s()
        return monotonic_s() - self._since_s
