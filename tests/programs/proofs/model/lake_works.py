"""The works of a lake that die or get an error at a storage call, as traces of one of its tables."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hudilake.storage.base import Storage
from tests.binlake.stream.dying_store import CHANGING, Answer, silent_threads
from tests.hudilake.actors.calls import without_pools
from tests.programs.crash_points.points import Point, Trial
from tests.programs.crash_points.story import Place
from tests.programs.crash_points.test_crash_points import WORKS
from tests.programs.proofs.model.case import Case
from tests.programs.proofs.model.following import unlike
from tests.programs.proofs.model.traces import Life, Observer, Trace, Watched

#: What becomes of a call: the process dies, after it or before it; or it gets an error, before or after it.
DEADLY = (Answer.DONE, Answer.LOST)
FAILING = (Answer.FAILED, Answer.UNANSWERED)
_SECOND = 2
_ROLES = {
    "w1": "writer",
    "k": "compactor",
    "l": "clusterer",
    "m": "mover",
    "c": "cleaner",
    "a": "archiver",
    "x": "restorer",
}


@dataclass
class _Table:
    """The calls of a lake on one of its tables, for its observer; those of threads one after the other.

    Attributes:
        lives: how many processes have opened the lake.
    """

    prefix: str
    observer: Observer
    lock: threading.Lock = field(default_factory=threading.Lock)
    lives: int = 0

    def made(self, by: tuple[str, ...], method: str, path: str) -> None:
        """A call was carried out."""
        if path.startswith(self.prefix):
            with self.lock:
                self.observer.made(by, method, path.removeprefix(self.prefix))


@dataclass(frozen=True)
class _ObservedPlace(Place):
    """A lake on local disk, one of whose tables is observed. ``dies``: whether the first process that opens it does."""

    table: _Table = field(default_factory=lambda: _Table("", Observer()))
    by: tuple[str, ...] = ()
    dies: bool = False

    def open(self) -> Storage:
        """Its root. The next process begins when nothing of a dead one is under way."""
        self.table.lives += 1
        if self.dies and self.table.lives == _SECOND:
            self.table.observer.died(self.by)
        return Watched(super().open(), self.by, self.table, Life())


@dataclass(frozen=True)
class LakeWork:
    """A work on a table of the lake.

    Args:
        name: of a work in ``WORKS``.
        table: "orders", which has one file group, or "accounts", which has one in each of three partitions.
        services: the processes that work on it beside the writer.
        indexed: whether the table has a metadata table.
        looks_up: whether its keys are looked up.
        fails: whether it is traced with errors too, and not with deaths alone.
    """

    name: str
    table: str
    services: tuple[str, ...] = ()
    indexed: bool = True
    looks_up: bool = False
    fails: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The processes of the model that a process of the lake may be."""
        return ("w1", *self.services)

    def case(self) -> Case:
        """The histories of the model in which it must be found."""
        return Case(
            "-".join(self.names),
            "traces",
            {name: _ROLES[name] for name in self.names},
            rounds={name: 9 if name == "w1" else 2 for name in self.names},
            indexed=self.indexed,
            crashes=1,
            mortal=self.names,
            groups=(1,) if self.table == "orders" else (1, 2, 3),
            max_time=99,
        )

    def unlike(self, place: Path, start: int = 0, step: int = 1) -> tuple[list[Trace], list[str]]:
        """What the table showed when the work died or failed at each call that changes it, and what of it is no history
        of the model (see ``following.unlike``). When a process that got an error goes on, only it knows.

        Args:
            place: an empty directory.
            start, step: which of these calls, with each answer.
        """
        found, wrong = list[Trace](), list[str]()
        for answers in (DEADLY, FAILING) if self.fails else (DEADLY,):
            traces = self.traces(place / answers[0], answers, start, step)
            found += traces
            wrong += unlike(self.case(), traces, of_lake=True, seen_deaths=answers is DEADLY)
        return found, wrong

    def traces(self, place: Path, answers: Sequence[Answer], start: int = 0, step: int = 1) -> list[Trace]:
        """What the table showed at each of these calls with each of these answers, each trace once."""
        work, places = WORKS[self.name], _Places(self, place)
        trial, found = Trial(work, places), list[Trace]()
        with pytest.MonkeyPatch.context() as patch, silent_threads():
            without_pools(patch)
            base = places("base")
            work.prepare(base)
            points = self._points(trial.calls(base), answers)[start::step]
            places.dies = answers is DEADLY
            for point in points:
                assert trial.at_point(base, point) == [], point
                found.append(tuple(places.newest.seen))
        return list(dict.fromkeys(found))

    def _points(self, calls: Sequence[tuple[str, str]], answers: Sequence[Answer]) -> list[Point]:
        mine = [
            (at, method, path)
            for at, (method, path) in enumerate(calls)
            if method in CHANGING and path.startswith(f"shop/{self.table}/")
        ]
        return [Point(*call, answer) for call in mine for answer in answers]


@dataclass
class _Places:
    """Places below a directory. The observer of each but the first knows what the first one's does.

    Attributes:
        newest: of the place that was made last.
        dies: whether the work dies in those that are made.
    """

    work: LakeWork
    directory: Path
    dies: bool = False
    newest: Observer = field(init=False)
    _first: Observer | None = None

    def __call__(self, name: str) -> _ObservedPlace:
        if self._first is None:
            self._first = self.newest = Observer(looks_up=self.work.looks_up)
        else:
            self.newest = copy.deepcopy(self._first)
        table = _Table(f"shop/{self.work.table}/", self.newest)
        return _ObservedPlace(str(self.directory / name), table=table, by=self.work.names, dies=self.dies)


#: Works with the processes that they are in the model.
LAKE_WORKS: Mapping[str, LakeWork] = {
    work.name: work
    for work in (
        LakeWork("the first batch", "orders"),
        LakeWork("a batch", "orders"),
        LakeWork("compaction", "orders", ("k",)),
        LakeWork("clean", "orders", ("k", "c")),
        LakeWork("archival", "orders", ("k", "a"), indexed=False),
        LakeWork("restore", "orders", ("x",)),
    )
}
