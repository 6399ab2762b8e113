"""Two writers of one table beside one writer that does the same work. ``python -m bench.writers``.

A table with a metadata table, partitions of 4 buckets, 20 columns. A writer merges rows by key and writes them as log
files of its own partitions, one commit after the other, under the policy ``--policy``. One process commits the work of
both; then two processes, each with one thread for Arrow, commit half of it each at the same time. They start together
once both are warm; the time is that from the start to the last commit. Both ways take turns. Prints the medians, the
ratio of each round, how often a commit was written again, and the processor time: all of it, and the part that is spent
in ``commit``, which writers do one after the other. On a machine that others use too, only the processor time says
something: two writers that cost as much as one are at most ``writers`` times, and at most one over that part, as fast.
The rows are counted afterwards, and fsck must find nothing.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

import numpy as np
import pyarrow as pa

from binlake.decode.changes import Op
from binlake.rows.upsert.merge import merge
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.clock import monotonic_s
from hudilake.commit.commit import OvertakenError
from hudilake.commit.intent import GroupIntent, Intent
from hudilake.format.definition.bucket import bucket_ids, file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import write_file_group
from hudilake.locking.choose import LockConfig
from hudilake.locking.ownership import Locking
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import Conflicts
from hudilake.read.slice import read_table
from hudilake.services.fsck import fsck
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable

BUCKETS, COLUMNS = 4, 20
CONFIG = TableConfig("writers", ("id",), ORDER_FIELD, BUCKETS, partition_fields=("part",))
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("part", pa.string()),
        *(pa.field(f"c{i}", pa.string() if i % 2 else pa.int64()) for i in range(COLUMNS)),
        pa.field(ORDER_FIELD, pa.int64()),
    ]
)


@dataclass(frozen=True)
class Spent:
    """What a writer, or several, needed: commits written again, and seconds of a processor, in all and in commits."""

    again: int = 0
    cpu: float = 0.0
    in_commit: float = 0.0

    def plus(self, other: Spent) -> Spent:
        """The sum."""
        return Spent(self.again + other.again, self.cpu + other.cpu, self.in_commit + other.in_commit)


@dataclass(frozen=True)
class Work:
    """What is committed: so many commits, each of so many rows for every bucket of one partition."""

    commits: int
    rows: int
    policy: Conflicts


def main(argv: Sequence[str] | None = None) -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--commits", type=int, default=24, help="of both writers together")
    parser.add_argument("--rows", type=int, default=20_000, help="of a commit, in each of 4 buckets")
    parser.add_argument("--policy", choices=["queue", "row", "column"], default="row")
    given = parser.parse_args(argv)
    work = Work(given.commits, given.rows, given.policy)
    ratios, times = list[float](), {1: list[float](), 2: list[float]()}
    for _ in range(given.rounds):
        for writers in (1, 2):
            seconds, spent = measure(work, writers)
            times[writers].append(seconds)
            part = spent.in_commit / spent.cpu
            print(
                f"{writers}: {seconds:.2f} s, processor {spent.cpu:.2f} s, {part:.0%} in commits, {spent.again} again"
            )
        ratios.append(times[1][-1] / times[2][-1])
        print(f"{ratios[-1]:.2f} times", flush=True)
    one, two = (statistics.median(times[writers]) for writers in (1, 2))
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"median {statistics.median(ratios):.2f} times ({spread}); one writer {one:.2f} s, two {two:.2f} s")


def measure(work: Work, writers: int) -> tuple[float, Spent]:
    """Commit the work with so many processes to a new table. Returns the seconds and what all of them needed. Raises
    RuntimeError if the table is not what was written."""
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as directory:
        storage = open_storage(directory)
        HudiTable.create(storage, CONFIG, SCHEMA, MetadataConfig())
        barrier, results = spawn.Barrier(writers + 1), spawn.Queue()
        mine = [list(range(number, work.commits, writers)) for number in range(writers)]
        processes = [
            spawn.Process(target=write, args=(directory, f"writer {n}", work, mine[n], barrier, results))
            for n in range(writers)
        ]
        for process in processes:
            process.start()
        barrier.wait()
        started = monotonic_s()
        spent = reduce(Spent.plus, [results.get() for _ in processes])
        seconds = monotonic_s() - started
        for process in processes:
            process.join()
        rows = sum(len(piece) for piece in read_table(storage, ["id"]))
        wrong = [f for f in fsck(storage).findings if f.severity != "info"]
        if wrong or rows != work.commits * work.rows * BUCKETS:
            raise RuntimeError(f"{rows} rows; {wrong}")
        return seconds, spent


def write(
    directory: str, name: str, work: Work, numbers: Sequence[int], barrier: Barrier, results: Queue[Spent]
) -> None:
    """One writer: a commit for each number, to the partition of that number."""
    pa.set_cpu_count(1)
    locking = Locking(LockConfig(), name)
    table = HudiTable.open(open_storage(directory), metadata=MetadataConfig(), locking=locking, conflicts=work.policy)
    rows = [_rows(work, bucket) for bucket in range(BUCKETS)]
    merge(("", 0), "warm", rows[0])
    barrier.wait()
    spent, began = Spent(), time.process_time()
    for number in numbers:
        done = False
        while not done:
            done, in_commit = _commit(table, number, rows)
            spent = spent.plus(Spent(again=not done, in_commit=in_commit))
    results.put(replace(spent, cpu=time.process_time() - began))


def _commit(table: HudiTable, number: int, rows: Sequence[pa.Table]) -> tuple[bool, float]:
    """Whether it was committed, and the processor time of ``commit``."""
    path = f"part={number:03}"
    table.refresh()
    places = [(path, bucket) for bucket in range(BUCKETS)]
    names = [file_id(CONFIG.name, *place) for place in places]
    try:
        instant = table.begin(Intent.of_groups(GroupIntent(path, name) for name in names))
    except OvertakenError:
        return False, 0.0
    context = table.write_context(instant)
    results = []
    for place, name, mine in zip(places, names, rows, strict=True):
        group, _ = merge(place, name, mine)
        results.append(write_file_group(table.storage, context, group))
    began = time.process_time()
    try:
        table.commit(instant, results)
    except OvertakenError:
        table.abort(instant)
        return False, time.process_time() - began
    table.maintain()
    return True, time.process_time() - began


def _rows(work: Work, bucket: int) -> pa.Table:
    """Rows of one file group as parcels hold them; the same ones for every partition."""
    chance = np.random.default_rng(7)
    every = chance.permutation(work.rows * BUCKETS)
    buckets = bucket_ids(pa.array(every).cast(pa.string()), CONFIG.record_key_fields, BUCKETS)
    ids = every[np.asarray(buckets) == bucket]
    count = len(ids)
    columns = {f"c{i}": chance.integers(0, 1 << 40, count) for i in range(COLUMNS)}
    order = np.arange(count, dtype=np.int64)
    return pa.table(
        {
            RECORD_KEY_FIELD: pa.array(ids).cast(pa.string()),
            "id": ids,
            "part": np.full(count, "p"),
            **{n: pa.array(v).cast(pa.string()) if int(n[1:]) % 2 else pa.array(v) for n, v in columns.items()},
            "__op": np.full(count, int(Op.UPSERT), dtype=np.int8),
            "__order": order,
            "__row": np.zeros(count, dtype=np.int32),
            "__offset": order,
            "__partition": np.zeros(count, dtype=np.int32),
        }
    )


if __name__ == "__main__":
    main()
