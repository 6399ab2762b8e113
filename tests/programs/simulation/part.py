"""The simulation as a part of the proofs: each input is a seed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import count, islice

from tests.programs.proofs.part import Outcome, Task, Verdict
from tests.programs.simulation.simulation import play
from tests.programs.simulation.steps import history, shrunk

#: How many seeds a whole run draws.
_SEEDS = 5_000


class SimulationPart:
    """Histories of two streams, another writer and services in one process, whose faults a seed draws."""

    name = "simulation"
    owner = "nobody: a seed draws them"
    inputs = "histories"
    about = """One seed draws the steps of a history: changes that come late, twice and in any order, what Kafka may
lose or hide, a new leader without the newest records, a clock that jumps, another writer, services (compaction,
clean, archival, restore, savepoints, rows laid out anew, other buckets), processes that die, and storage calls that
are lost, late, failed, unanswered or doubled. Nothing sleeps; the store is in memory. In the end the tables hold the
newest change of each key, fsck and audit find nothing, and each file holds what its commit recorded. A second stream
writes one of the tables; tasks end in a drawn order. The kinds of the tables are drawn too: merge-on-read and copy-
on-write, one to three buckets, hash rings, each index that keeps nothing outside the lake, and streams that serve
their tables themselves, append tables, tables with the engines `partial_update`, `first_row` and `aggregate`, and a
history table, each of whose versions is compared. Rows of one table change partition.
What a process reads before it has a lock may be as it was before another's work; no store that binlake supports gives
staler listings. A seed that fails is shrunk: its detail has the fewest steps. An hour of
one core plays about 5,000."""

    def run(self, task: Task) -> Iterator[Verdict]:
        """One seed after the other."""
        logging.disable(logging.WARNING)
        seeds = (seed for seed in count(task.start) if f"seed {seed}" not in task.judged)
        for seed in islice(seeds, task.limit if task.limit is not None else _SEEDS):
            steps = history(seed)
            trouble = play(steps)
            if not trouble:
                yield Verdict(f"seed {seed}", Outcome.EQUAL)
                continue
            fewest = shrunk(steps, lambda fewer: bool(play(fewer)))
            yield Verdict(f"seed {seed}", Outcome.WRONG, trouble[:300], "; ".join(map(str, fewest)))
