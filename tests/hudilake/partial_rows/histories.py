"""Random histories of a table with partial rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from hudilake.services.compaction import CompactionConfig, complete, execute, prepare, run, schedule
from tests.hudilake.partial_rows.lake import VALUES, Event, Full, Gone, Lake, Part, cells
from tests.hudilake.services.compaction.steps import serially

ALWAYS = CompactionConfig(after_commits=1, tombstone_retention_hours=1, row_group_rows=4)
KEYS = range(1, 25)

#: Compacts the table at a path, by whoever; False if there was nothing to compact.
Compactor = Callable[[Lake], bool]


def ours(lake: Lake) -> bool:
    """A compaction by binlake."""
    return bool(run(lake.opened().table, ALWAYS, serially))


class History:
    """A random history. ``steps`` carries it out one step at a time.

    Args:
        path: of a new table.
        seed: decides everything.
        compactors: who compacts, chosen at random.
    """

    def __init__(self, path: Path, seed: int, compactors: Iterable[Compactor] = (ours,)) -> None:
        self._random = random.Random(seed)
        self._compactors = list(compactors)
        self._number = 0
        indexed, self._partitioned = self._random.random() < 0.6, self._random.random() < 0.5
        buckets = self._random.choice([1, 2])
        self.lake = Lake.new(path, indexed=indexed, buckets=buckets, partitioned=self._partitioned)

    def steps(self, count: int) -> Iterator[str]:
        """What each step was, after it."""
        low = self._random.random() < 0.5
        first = {key: Full(self._cells(VALUES), 5) if low else Full(self._cells(VALUES)) for key in KEYS if key % 2}
        self.lake.commit(first, base=self._random.random() < 0.5)
        yield "first commit"
        kinds = [self._commit] * 5 + [self._compact] * 2
        if not self._partitioned:  # the statistics of partitions follow the order of the instants
            kinds += [self._side_by_side, self._over_a_compaction]
        for _ in range(count):
            step = self._random.choice(kinds)
            step()
            yield step.__name__.removeprefix("_")

    def _commit(self) -> None:
        self.lake.commit(self._events(KEYS))

    def _compact(self) -> None:
        self._random.choice(self._compactors)(self.lake)

    def _side_by_side(self) -> None:
        """Two commits that change different columns or keys, completed in the other order."""
        one, two = self._apart()
        table = self.lake.table
        first, second = table.begin(), table.begin()
        written = self.lake.write(first, one)
        table.commit(second, self.lake.write(second, two))
        self.lake.apply(two)
        table.commit(first, written)
        self.lake.apply(one)

    def _over_a_compaction(self) -> None:
        """A commit that begins before another commit and completes after a compaction of that one is scheduled: its log
        file lies over the new base file."""
        one, two = self._apart()
        table = self.lake.table
        first = table.begin()
        written = self.lake.write(first, one)
        del self.lake.pictures[self.lake.commit(two)]  # time travel there will show the first commit too
        requested = schedule(table, ALWAYS)
        table.commit(first, written)
        self.lake.apply(one)
        if requested is not None:
            job = prepare(table, requested, ALWAYS)
            complete(table, job.instant, execute(job, serially))

    def _apart(self) -> tuple[dict[int, Event], dict[int, Event]]:
        """Events of two commits that do not conflict: of different keys, or of different columns of rows that live."""
        at = self._random.randrange(min(KEYS), max(KEYS))
        one, two = self._events([k for k in KEYS if k < at]), self._events([k for k in KEYS if k > at])
        if at in self.lake.model:
            names = self._random.sample(VALUES, self._random.randint(2, len(VALUES)))
            half = len(names) // 2
            one[at], two[at] = Part(self._cells(names[:half])), Part(self._cells(names[half:]))
        return one or {0: Full(self._cells(VALUES))}, two or {100: Full(self._cells(VALUES))}

    def _events(self, keys: Iterable[int]) -> dict[int, Event]:
        listed = list(keys)
        chosen = self._random.sample(listed, self._random.randint(min(1, len(listed)), len(listed)))
        if self._random.random() < 0.3:
            chosen = chosen[:2]
        return {key: self._event(key) for key in chosen}

    def _event(self, key: int) -> Event:
        dice = self._random.random()
        if key not in self.lake.model:
            return Gone() if dice < 0.2 else Full(self._cells(self._names()))
        if dice < 0.6:
            return Part(self._cells(self._names()))
        return Full(self._cells(self._names())) if dice < 0.8 else Gone()

    def _names(self) -> list[str]:
        return self._random.sample(VALUES, self._random.randint(1, len(VALUES)))

    def _cells(self, names: Iterable[str]) -> dict[str, Any]:
        self._number += 1
        made = cells(self._number, *names)
        return {name: None if self._random.random() < 0.2 else value for name, value in made.items()}
