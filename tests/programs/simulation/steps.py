"""What may happen in a history, as values: one seed draws them all, and each makes sense without the others."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tests.binlake.stream.dying_store import Answer
from tests.programs.crash_points.story import TABLES

#: So few keys that events meet.
KEYS: Final = 6
#: Where rows begin, and where those of the partitioned table may go.
HOME: Final = "eu"
_REGIONS: Final = (HOME, "us", "asia")
_CALLS: Final = 130


class Happening(StrEnum):
    """The sort of a step."""

    SHAPE = "a table is of another kind, if it does not exist yet"
    PUT = "a row is changed at the source"
    DELETE = "a row is deleted at the source"
    POISON = "a record comes that nobody can read"
    DELIVER = "records reach their topics, in order or not"
    AGAIN = "records reach their topics once more"
    LAG = "a leader that lags hides the newest records from a batch"
    AGED = "Kafka deletes what the stream has read"
    COMPACTED = "Kafka keeps the newest record of each key alone"
    BATCH = "the stream applies what is in its topics"
    SECOND = "a second stream of the same table applies what is in its topic"
    RESTART = "the stream's process ends and a new one begins"
    NO_LEDGER = "the ledger is lost"
    OTHER = "another writer commits"
    COMPACT = "a service compacts"
    CLEAN = "a service cleans"
    ARCHIVE = "a service archives"
    RESTORE = "a service restores"
    HOLD = "a savepoint is made or deleted"
    LAY_OUT = "a service lays rows out anew"
    REBUCKET = "rows move to other buckets"
    UNREAD = "a new leader lacks the newest records, which nobody has read, and the connector sends them again"
    CLOCK = "the clock jumps"


@dataclass(frozen=True)
class Fault:
    """Call ``at`` of the work gets another answer; None: it is done, and done again later. What is late arrives before
    call ``arrives_at`` of the next process.

    ``early``: instead of it, what the work reads up to that call, and before it has a lock or changes anything, is as
    it was before the work that another process has done since.
    """

    at: int
    answer: Answer | None
    arrives_at: int
    early: bool = False

    def __str__(self) -> str:
        if self.early:
            return f"it reads before what was done last, up to call {self.at}"
        return f"call {self.at} of the work is {self.answer or 'doubled'}"


@dataclass(frozen=True)
class Step:
    """One step. ``number``: a seed of its own, or minutes."""

    what: Happening
    table: str = TABLES[0]
    key: int = 0
    number: int = 0
    fault: Fault | None = None

    @property
    def stream(self) -> str:
        """Whose topics it is about, where both streams have such."""
        return "second" if self.table == "orders" and self.number % 2 else "shop"

    @property
    def region(self) -> str | None:
        """Where a changed row goes; None: it stays."""
        return _REGIONS[self.number // 3 % 3] if self.table == "accounts" and self.number % 3 == 0 else None

    def __str__(self) -> str:
        fault = f"; {self.fault}" if self.fault is not None else ""
        return f"{self.what} ({self.table}, key {self.key}, {self.number}){fault}"


#: How often each comes, of all.
_WEIGHTS: Final = {
    Happening.PUT: 30,
    Happening.DELETE: 8,
    Happening.POISON: 1,
    Happening.DELIVER: 14,
    Happening.AGAIN: 3,
    Happening.LAG: 2,
    Happening.AGED: 2,
    Happening.COMPACTED: 2,
    Happening.BATCH: 12,
    Happening.SECOND: 5,
    Happening.RESTART: 2,
    Happening.NO_LEDGER: 1,
    Happening.OTHER: 5,
    Happening.COMPACT: 5,
    Happening.CLEAN: 3,
    Happening.ARCHIVE: 3,
    Happening.RESTORE: 1,
    Happening.HOLD: 2,
    Happening.LAY_OUT: 3,
    Happening.REBUCKET: 2,
    Happening.UNREAD: 2,
    Happening.CLOCK: 4,
}
#: What a process of its own does.
WORK: Final = (
    Happening.BATCH,
    Happening.SECOND,
    Happening.OTHER,
    Happening.COMPACT,
    Happening.CLEAN,
    Happening.ARCHIVE,
    Happening.RESTORE,
    Happening.HOLD,
    Happening.LAY_OUT,
    Happening.REBUCKET,
)


def history(seed: int, length: int = 120) -> list[Step]:
    """The steps of a seed."""
    chance = random.Random(seed)
    sorts, weights = list(_WEIGHTS), list(_WEIGHTS.values())
    shapes = [Step(Happening.SHAPE, table, number=chance.randrange(1 << 16)) for table in TABLES]
    return [*shapes, *(_step(chance, what) for what in chance.choices(sorts, weights, k=length))]


def _step(chance: random.Random, what: Happening) -> Step:
    fault = None
    if what in WORK and chance.random() < 0.4:
        answers = [(answer, False) for answer in [*Answer, None]] + [(None, True)]
        answer, early = chance.choice(answers)
        fault = Fault(chance.randrange(_CALLS), answer, chance.randrange(_CALLS), early)
    number = chance.randrange(-50, 90) if what is Happening.CLOCK else chance.randrange(1 << 16)
    return Step(what, chance.choice(TABLES), chance.randrange(KEYS), number, fault)


def shrunk(steps: list[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
    """As few of the steps as still fail: parts are left out, halves first, then single steps, then faults."""
    size = len(steps) // 2
    while size:
        start = 0
        while start < len(steps):
            fewer = [*steps[:start], *steps[start + size :]]
            if fails(fewer):
                steps = fewer
            else:
                start += size
        size //= 2
    for place, step in enumerate(steps):
        plain = [*steps[:place], Step(step.what, step.table, step.key, step.number), *steps[place + 1 :]]
        if step.fault is not None and fails(plain):
            steps = plain
    return steps
