"""Writers as processes that count in one log, and are killed and started again."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from bench.metastore.log_stores import Place
from pipeline.clock import monotonic_s
from pipeline.metastore.log.errors import LogOutcomeUnknownError
from pipeline.metastore.log.policy import LogPolicy
from pipeline.metastore.log.versioned import VersionedLog
from tests.metastore.log.counters import FOLD, Change, Counters, counting

LOG = "tables/counted"
POLICY = LogPolicy(snapshot_every=20, turn_timeout_s=0.5)
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__])
_START_TIMEOUT_S = 60


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
    """

    place: Place
    count: int
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
            self._kill(name)

    def work(self, seconds: float, *, kill_every_s: float = 0.0, least: int = 1, seed: int = 0) -> None:
        """Let them write; kill one of them now and then.

        Args:
            seconds: how long.
            kill_every_s: how often one is killed and begins anew; 0: never.
            least: go on until each name has so many commits, for at most ten times as long.
            seed: of who is killed when.
        """
        draw, begun = random.Random(seed), monotonic_s()
        next_kill = begun + kill_every_s * draw.random() if kill_every_s else float("inf")
        while (now := monotonic_s()) < begun + seconds or min(self.counts().values()) < least:
            assert now < begun + 10 * seconds, f"a writer does not get on: {self.counts()}"
            if now > next_kill and now < begun + seconds:
                name = draw.choice(sorted(self._running))
                self._kill(name)
                self.kills += 1
                self._start(name)
                next_kill = monotonic_s() + kill_every_s * draw.uniform(0.5, 1.5)
            time.sleep(0.005)
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
        process = _context.Process(target=_count, args=(self.place, name, sending), daemon=True)
        process.start()
        sending.close()
        self._running[name] = process, receiving

    def _kill(self, name: str) -> None:
        self._signal(name, signal.SIGKILL)
        process, pipe = self._running.pop(name)
        process.join()
        self._take(pipe)
        pipe.close()

    def _listen(self) -> None:
        for process, pipe in self._running.values():
            self._take(pipe)
            assert process.is_alive(), "a writer ended by itself"

    def _take(self, pipe: Connection) -> None:
        # A pipe whose writer was killed may end within a message.
        with contextlib.suppress(EOFError, OSError):
            while pipe.poll():
                self.answered.append(pipe.recv())


def _count(place: Place, name: str, pipe: Connection) -> None:
    """The work of a process: until it is killed."""
    store = place.open()
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
