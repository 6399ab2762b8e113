"""Commits a second of a log on each store: ``python -m bench.metastore.commits``.

Each writer is a process that commits in a loop: it reads what is new, proposes, and appends by compare-and-swap. All
write one log. ``share`` is the commits of the slowest writer of a round divided by those that each would have if all
had the same; the worst round's is printed."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.metastore.log_stores import KINDS, Place, started_place
from hudilake.clock import monotonic_s
from lakemetastore.log.fold import StructFold, VersionedChange
from lakemetastore.log.versioned import VersionedLog

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["bench.metastore.commits"])
_START_TIMEOUT_S: Final = 120


class Put(msgspec.Struct, frozen=True, tag="put"):
    """A change of the size of a small partition's."""

    key: str
    text: str


class Values(msgspec.Struct, frozen=True):
    """The text of each key."""

    values: dict[str, str] = {}


def _apply(state: Values, changes: Sequence[VersionedChange[Put]]) -> Values:
    return Values({**state.values, **{each.change.key: each.change.text for each in changes}})


FOLD: Final[StructFold[Values, Put]] = StructFold(Put, Values, Values, _apply)


@dataclass(frozen=True)
class Round:
    """Commits of each writer in a round.

    Args:
        store: the kind of the store.
        seconds: how long the round was.
        counts: commits of each writer.
        slowest_ms: the longest commit of all.
    """

    store: str
    seconds: float
    counts: tuple[int, ...]
    slowest_ms: float

    @property
    def rate(self) -> float:
        """Commits a second of all writers."""
        return sum(self.counts) / self.seconds

    @property
    def share(self) -> float:
        """Of the slowest writer."""
        return min(self.counts) * len(self.counts) / max(sum(self.counts), 1)


def _commit(log: VersionedLog[Values, Put], writer: str, end_s: float) -> tuple[int, float]:
    """Commit until then; how often, and the seconds of the slowest commit."""
    count, slowest = 0, 0.0
    while (begun := monotonic_s()) < end_s:
        change = Put(f"{writer}-{count % 50}", "a partition of a table, " * 8)
        log.commit(lambda state, change=change: change)  # type: ignore[misc]
        count += 1
        slowest = max(slowest, monotonic_s() - begun)
    return count, slowest


def _work(
    where: Place,
    name: str,
    writer: int,
    seconds: float,
    threads: int,
    start: Barrier,
    answers: Any,  # noqa: ANN401 - a queue of a context
) -> None:
    log: VersionedLog[Values, Put] = VersionedLog(where.open(), name, FOLD)
    log.state()
    start.wait(_START_TIMEOUT_S)
    end = monotonic_s() + seconds
    with ThreadPoolExecutor(threads) as pool:
        done = list(pool.map(lambda thread: _commit(log, f"{writer}-{thread}", end), range(threads)))
    log.close()
    answers.put((writer, sum(count for count, _ in done), max(slowest for _, slowest in done) * 1000))


def measure(where: Place, writers: int, seconds: float, number: int, threads: int = 1) -> Round:
    """One round, in a log of its own."""
    start, answers = _context.Barrier(writers), _context.Queue()
    arguments = (seconds, threads, start, answers)
    processes = [_context.Process(target=_work, args=(where, f"log{number}", w, *arguments)) for w in range(writers)]
    for process in processes:
        process.start()
    done = sorted(answers.get(timeout=_START_TIMEOUT_S + 10 * seconds) for _ in processes)
    for process in processes:
        process.join()
    return Round(where.kind, seconds, tuple(count for _, count, _ in done), max(slowest for *_, slowest in done))


def rounds(kinds: Sequence[str], writers: Sequence[int], seconds: float, count: int, threads: int) -> Iterator[Round]:
    """All rounds of each store; numbers of writers in turns."""
    for kind in kinds:
        with tempfile.TemporaryDirectory() as directory, started_place(kind, Path(directory)) as where:
            numbers = iter(range(1 << 30))
            for _ in range(count):
                for many in writers:
                    yield measure(where, many, seconds, next(numbers), threads)


def table(found: Sequence[Round]) -> str:
    """The rounds as a table in Markdown."""
    lines = ["| store | writers | commits a second | spread | share of the slowest | slowest commit (ms) |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for store, writers in dict.fromkeys((each.store, len(each.counts)) for each in found):
        mine = [each for each in found if (each.store, len(each.counts)) == (store, writers)]
        rates = sorted(each.rate for each in mine)
        share, slowest = min(each.share for each in mine), max(each.slowest_ms for each in mine)
        rate = f"{statistics.median(rates):,.0f} | {rates[0]:,.0f} to {rates[-1]:,.0f}"
        lines.append(f"| {store} | {writers} | {rate} | {share:.2f} | {slowest:,.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stores", default=",".join(KINDS))
    parser.add_argument("--writers", default="1,4,16")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="of each writer")
    options = parser.parse_args()
    writers = [int(number) for number in options.writers.split(",")]
    found: list[Round] = []
    for each in rounds(options.stores.split(","), writers, options.seconds, options.rounds, options.threads):
        print(json.dumps(asdict(each)), flush=True)
        found.append(each)
    print(table(found))


if __name__ == "__main__":
    main()
