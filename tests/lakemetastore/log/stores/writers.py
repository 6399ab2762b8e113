"""Writers as processes that count in one log, and are killed and started again."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from bench.metastore.log_stores import Place
from hudilake.clock import monotonic_s
from lakemetastore.log.errors import LogOutcomeUnknownError
from lakemetastore.log.pace import Pace
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.stores.base import LogStore
from lakemetastore.log.versioned import VersionedLog
from tests.lakemetastore.log.counters import FOLD, Change, Counters, counting

LOG = "tables/counted"
POLICY = LogPolicy(snapshot_every=20, turn_timeout_s=0.5)
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__])
_START_TIMEOUT_S = 60
_GAIN_TIMEOUT_S = 300


@dataclass(frozen=True)
class Answered:
    """A commit that a writer was told is done."""

    writer: str
    number: int
    version: int


@dataclass
class Crew:
    """Some writers of one log.

    Args:
        place: of the store.
        count: of writers.
        turns: whether they wait for their turn and rest; without, who has just written is the first to write again.
    """

    place: Place
    count: int
    turns: bool = True
    answered: list[Answered] = field(default_factory=list)
    kills: int = 0
    doubts: int = 0
    _running: dict[str, tuple[BaseProcess, Any]] = field(default_factory=dict)

    def __enter__(self) -> Crew:
        for number in range(self.count):
            self._start(f"w{number}")
        for _, pipe in self._running.values():
            assert pipe.poll(_START_TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._running):
            self._end(name)

    def kill(self, times: int, every_s: float, seed: int = 0) -> None:
        """Kill one after the other, each at a moment of its own while they write; a killed one begins anew.

        Args:
            times: how many.
            every_s: the seconds from one to the next, half of it to one and a half.
            seed: of who is killed when.
        """
        draw = random.Random(seed)
        for _ in range(times):
            next_kill = monotonic_s() + every_s * draw.uniform(0.5, 1.5)
            while monotonic_s() < next_kill:
                self._listen()
            name = draw.choice(sorted(self._running))
            self._end(name)
            self.kills += 1
            self._start(name)

    def gain(self, commits: int = 0, *, each: int = 0, of: Collection[str] = ()) -> dict[str, int]:
        """Let them write until they have made so many commits more; returns the commits of each.

        However slow the machine is, the test then has what it needs for its statement, or fails here.

        Args:
            commits: of all that are counted together.
            each: of everyone that is counted.
            of: the names of those that are counted; empty: all.
        """
        before, end = self.counts(), monotonic_s() + _GAIN_TIMEOUT_S
        while True:
            gained = {name: count - before[name] for name, count in self.counts().items() if not of or name in of}
            if sum(gained.values()) >= commits and min(gained.values()) >= each:
                return gained
            assert monotonic_s() < end, f"too few commits in {_GAIN_TIMEOUT_S} s: {gained}"
            self._listen()

    def suspend(self, name: str) -> None:
        """Stop a writer where it is, with the turn most likely: it has hardly anything else to do."""
        self._signal(name, signal.SIGSTOP)
        self.doubts += 1

    def resume(self, name: str) -> None:
        """Let a suspended writer go on."""
        self._signal(name, signal.SIGCONT)

    def counts(self) -> dict[str, int]:
        """Commits of each writer that it was told of."""
        names = [answered.writer for answered in self.answered]
        return {f"w{number}": names.count(f"w{number}") for number in range(self.count)}

    def _signal(self, name: str, number: signal.Signals) -> None:
        process, _ = self._running[name]
        assert process.pid is not None
        os.kill(process.pid, number)

    def _start(self, name: str) -> None:
        receiving, sending = _context.Pipe(duplex=False)
        process = _context.Process(target=_count, args=(self.place, name, sending, self.turns), daemon=True)
        process.start()
        sending.close()
        self._running[name] = process, receiving

    def _end(self, name: str) -> None:
        self._signal(name, signal.SIGKILL)
        process, pipe = self._running.pop(name)
        process.join()
        self._take(pipe)
        pipe.close()

    def _listen(self) -> None:
        """Take what the writers told, after a moment."""
        time.sleep(0.005)
        for process, pipe in self._running.values():
            self._take(pipe)
            assert process.is_alive(), "a writer ended by itself"

    def _take(self, pipe: Connection) -> None:
        # A pipe whose writer was killed may end within a message.
        with contextlib.suppress(EOFError, OSError):
            while pipe.poll():
                self.answered.append(pipe.recv())


def _count(place: Place, name: str, pipe: Connection, turns: bool) -> None:
    """The work of a process: until it is killed."""
    store = place.open()
    if not turns:
        _take_no_turns(store)
    log: VersionedLog[Counters, Change] = VersionedLog(store, LOG, FOLD, POLICY)
    while True:
        try:
            done = log.commit(counting(name))
            pipe.send(Answered(name, done.state.numbers[name], done.version))
        except LogOutcomeUnknownError:
            # It was suspended while others wrote more than a log remembers; its next number shows what became of it.
            continue
        except BrokenPipeError:
            return


def _take_no_turns(store: LogStore) -> None:
    """Take the queue and the rests from the writers of this process."""
    store.turn = lambda log, timeout_s: contextlib.nullcontext(False)  # type: ignore[method-assign]
    Pace.rest = lambda self: None  # type: ignore[method-assign]


def faults(place: Place, crew: Crew) -> list[str]:
    """What is wrong with the log after the crew has worked."""
    store = place.open()
    log: VersionedLog[Counters, Change] = VersionedLog(store, LOG, FOLD)
    at = log.state()
    found = list(at.state.wrong)
    if at.version != store.last(LOG) or at.version != at.state.changes:
        found.append(f"version {at.version} has {at.state.changes} changes, the store's last is {store.last(LOG)}")
    for writer in crew.counts():
        mine = [each for each in crew.answered if each.writer == writer]
        numbers = [each.number for each in mine]
        if numbers != sorted(set(numbers)) or len({each.version for each in mine}) != len(mine):
            found.append(f"{writer} was told twice of one commit: {numbers}")
        if at.state.numbers.get(writer, 0) < numbers[-1]:
            found.append(f"{writer} was told of {numbers[-1]}, the log has {at.state.numbers.get(writer)}")
        # Each death loses at most one answer, as may the end of a long suspension; no other is lost.
        if at.state.numbers[writer] - len(numbers) > crew.kills + crew.doubts + 1:
            found.append(f"{writer} has {at.state.numbers[writer]} commits and was told of {len(numbers)}")
    if len({each.version for each in crew.answered}) != len(crew.answered):
        found.append("two writers were told of the same version")
    store.close()
    return found
