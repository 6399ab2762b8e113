"""Tables that do not go on with the others: paused by a person, stopped by an error, or being fetched anew."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from binlake.source.offsets import NO_OFFSETS, Offsets
from hudilake.clock import now_ms
from hudilake.errors import LakeError, LostOwnershipError, TransientError


def needs_a_person(error: LakeError) -> bool:
    """Whether a table's error does not pass by itself: another attempt would end in the same way."""
    return not isinstance(error, (TransientError, LostOwnershipError))


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a table cannot go on by itself.

    Args:
        what: the error, with the places that it names.
        do_next: the error's advice.
        kind: the class of the error.
        tried_ms: when the table was last tried, in ms since the epoch.
    """

    what: str
    do_next: str
    kind: str
    tried_ms: int

    @staticmethod
    def of(error: LakeError) -> Stop:
        """The stop that an error causes now."""
        places = ", ".join(f"{name}={value}" for name, value in error.where.items())
        what = f"{error.what} [{places}]" if places else error.what
        return Stop(what, error.do_next, type(error).__name__, now_ms())

    def to_json(self) -> list[Any]:
        """The stop as values for ``json.dumps``."""
        return [self.what, self.do_next, self.kind, self.tried_ms]


class ResyncStep(StrEnum):
    """How far a resync has come."""

    ASKED = "asked"
    SIGNALLED = "signalled"
    READING = "reading"
    APPLYING = "applying"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Resync:
    """How far the stream has come with fetching a table anew.

    Args:
        id: of the request.
        step: ASKED until the signal is sent, SIGNALLED until the connector tells of it, READING until it has read the
            table, APPLYING until the stream has applied all records up to ``until``.
        until: the ends of the table's topics after the connector had read the table.
        why: why it has failed.
    """

    id: str
    step: ResyncStep = ResyncStep.ASKED
    until: Offsets = NO_OFFSETS
    why: str = ""

    @property
    def active(self) -> bool:
        """Whether it goes on."""
        return self.step not in (ResyncStep.DONE, ResyncStep.FAILED)

    def to_json(self) -> list[Any]:
        """The resync as values for ``json.dumps``."""
        return [self.id, self.step.value, self.until.to_json(), self.why]

    @staticmethod
    def from_json(data: list[Any]) -> Resync:
        """The reverse of ``to_json``. Raises ValueError, TypeError."""
        name, step, until, why = data
        return Resync(name, ResyncStep(step), Offsets.from_json(until), why)
