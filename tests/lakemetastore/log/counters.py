"""A log for tests: named counters, and who has written which of its own numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from lakemetastore.log.fold import StructFold, VersionedChange


class Added(msgspec.Struct, frozen=True, tag="added"):
    """A writer counts on. ``number``: its own, from 1."""

    writer: str
    number: int
    filling: bytes = b""


class Forgotten(msgspec.Struct, frozen=True, tag="forgotten"):
    """A writer's counter is gone."""

    writer: str


class Counters(msgspec.Struct, frozen=True):
    """The newest number of each writer, and how many changes there were. ``wrong``: numbers that did not follow."""

    numbers: dict[str, int] = {}
    changes: int = 0
    wrong: tuple[str, ...] = ()


Change = Added | Forgotten


def apply(state: Counters, changes: Sequence[VersionedChange[Change]]) -> Counters:
    """The counters after some changes."""
    numbers, wrong = dict(state.numbers), list(state.wrong)
    for versioned in changes:
        change = versioned.change
        if isinstance(change, Forgotten):
            numbers.pop(change.writer, None)
            continue
        if change.number != numbers.get(change.writer, 0) + 1:
            wrong.append(f"{change.writer} {change.number} in version {versioned.version}")
        numbers[change.writer] = change.number
    return Counters(numbers, state.changes + len(changes), tuple(wrong))


def counting(writer: str, filling: bytes = b"") -> Callable[[Counters], Change]:
    """Proposes the writer's next number."""
    return lambda state: Added(writer, state.numbers.get(writer, 0) + 1, filling)


FOLD: StructFold[Counters, Change] = StructFold(Change, Counters, Counters, apply)
