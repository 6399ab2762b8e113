"""What a writer's pending instants began upon, and what others have written since: what a commit is checked against."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from hudilake.format.timeline.instant import Instant


@dataclass(frozen=True, slots=True)
class Begun:
    """What a pending instant began upon.

    Args:
        seen: how many writes of other writers its writer knew.
        schema: the table's columns then.
        whole: whether its content depends on the whole table.
        compactions: the requested times of the compactions that its writer knew, where they matter
            (``TableState.compactions``).
    """

    seen: int
    schema: pa.Schema
    whole: bool = False
    compactions: frozenset[str] = frozenset()


class BegunInstants:
    """The pending instants of one writer, and the overtaking writes of others in the order in which they were taken in:
    an instant, or None for another ``hoodie.properties``."""

    def __init__(self) -> None:
        self._begun: dict[str, Begun] = {}
        self._given_up: set[str] = set()
        self._foreign_writes: list[Instant | None] = []

    @property
    def seen(self) -> int:
        """How many writes of others were taken in."""
        return len(self._foreign_writes)

    def of(self, instant: str) -> Begun | None:
        """What an instant began upon; None if this writer did not begin it."""
        return self._begun.get(instant)

    def note(self, instant: str, begun: Begun) -> None:
        """Note what an instant begins upon."""
        self._begun[instant] = begun

    def forget(self, instant: str) -> None:
        """An instant has ended, or is another writer's now."""
        self._begun.pop(instant, None)
        self._given_up.discard(instant)

    def give_up(self, instant: str) -> None:
        """Its writer will not complete an instant, which is pending until it is rolled back."""
        self._begun.pop(instant, None)
        self._given_up.add(instant)

    @property
    def gave_up(self) -> bool:
        """Whether there are instants that this writer gave up."""
        return bool(self._given_up)

    def is_given_up(self, instant: str) -> bool:
        """Whether this writer gave an instant up that has not been rolled back since."""
        return instant in self._given_up

    def take_in(self, writes: Iterable[Instant | None]) -> None:
        """Note writes of others."""
        self._foreign_writes += writes

    def forget_foreign_writes(self) -> None:
        """Count writes of others from here on, if no instant is pending that began before."""
        if not self._begun:
            self._foreign_writes.clear()

    def foreign_writes(self, since: int) -> list[Instant | None]:
        """The writes of others that were taken in after the first ``since``."""
        return self._foreign_writes[since:]

    def properties_changed_since(self, instant: str) -> bool:
        """Whether another process has changed ``hoodie.properties`` since an instant of this writer began."""
        return None in self.foreign_writes(self._begun[instant].seen)
