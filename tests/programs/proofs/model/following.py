"""Runs of writers and compactors on a real table, and how far TLC can follow their traces in the model."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from hudilake.commit.commit import OvertakenError
from hudilake.commit.intent import GroupIntent, Intent
from hudilake.errors import LostOwnershipError, UnsupportedError
from hudilake.format.definition.bucket import bucket_ids
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.format.timeline.instant import DELTA_COMMIT
from hudilake.index.open import open_index
from hudilake.locking.file_lock import LOCK_PATH
from hudilake.metadata.config import MetadataConfig
from hudilake.services.archival import ArchivalConfig
from hudilake.services.clustering.completion import complete
from hudilake.services.clustering.job import execute, prepare, waiting
from hudilake.services.clustering.scheduling import schedule
from hudilake.services.restore import finish_pending_restores, restore
from hudilake.storage.base import Storage
from hudilake.table.table import HudiTable
from tests.hudilake.actors.actors import Part, archiver, cleaner, committed, compactor, write_batches
from tests.hudilake.actors.calls import run_by_calls, without_pools
from tests.hudilake.actors.orders import WAITS, Actor
from tests.hudilake.actors.world import World
from tests.hudilake.lake import ORDER, SCHEMA, config, groups, storage_at, upserts, write
from tests.hudilake.services.clustering.made import Made, clustering
from tests.programs.crash_points.works import serially
from tests.programs.proofs.model.case import Case
from tests.programs.proofs.model.checking import ModelError, said
from tests.programs.proofs.model.traces import Killed, Life, Observer, Trace, Watched, with_rooms

_NAME = "Recorded"
#: So many cleans, archivals or restores of a run may find something; the model leaves out the others.
_SERVICES = 3
#: Its own upkeep stays out of the way.
_INDEX = MetadataConfig(compact_after=1000, compact_at_most=1000, archive_after=2000, archive_keep=1000)
#: Of archivals.
_LEAVES_ONE = ArchivalConfig(1, 2)
_LOOKED_UP = TableConfig("t1", ("id",), ORDER, 0, kind=TableKind("merge_on_read", "bloom"))
#: Constants and definitions that traces have instead of the model's.
_FINER = "  Together <- OneByOne\n  FirstOf <- AnyOf\n  Ahead <- Rooms\n"
_UNSEEN = "  UnseenDeaths <- Yes\n"
_OF_A_LAKE = "  Choices <- AnyChoices\n  GivesUp <- Yes\n  AfterError <- OrGoesOn\n  MayAct <- InTurn\n"
_REACHED = re.compile(r'<<"reached", (\d+), (\d+)>>')


def _writer(world: World, name: str, rounds: int) -> Actor:
    order = 100 * (1 + sorted(ROLES).index(name.removeprefix("next ")))
    return write_batches(world, name, [upserts([1, 2], order + n, name) for n in range(rounds)])


def _restorer(world: World, name: str, rounds: int) -> Actor:
    """Restores, each to the first commit that can still be restored; what the dead have begun is finished first;
    who lives is waited for."""
    yield "start"
    table = world.opened(name)
    finish_pending_restores(table, world.index)
    table.rollback_pending()
    for number in range(rounds):
        phase, done = "restore", False
        while not done:
            yield phase
            table = world.opened(name)
            try:
                _restored(table, number, world.index)
                done = True
            except LostOwnershipError:
                phase = f"{WAITS}, restore"


def _restored(table: HudiTable, number: int, index: MetadataConfig | None) -> None:
    """To the first commit from a number on that can still be restored. Raises LostOwnershipError beside a writer."""
    for commit in [w for w in table.timeline.completed() if w.action == DELTA_COMMIT][number:]:
        with contextlib.suppress(UnsupportedError):
            restore(table, commit.requested_time, index)
            return


def _looking_up(world: World, name: str, rounds: int) -> Actor:
    """A writer of a table whose keys are looked up."""
    yield "start"
    table = world.opened(name)
    table.rollback_pending()
    order = 100 * (1 + sorted(ROLES).index(name.removeprefix("next ")))
    for number in range(rounds):
        done = False
        while not done:
            yield "refresh"
            table.refresh()
            yield "begin"
            instant = table.begin()
            yield "write"
            made = Made(world.path, table, index=open_index(table))
            results = made.written(instant, upserts([1, 2], order + number, name))
            done = (yield from committed(table, instant, results)) is not None


#: By stream the ids that it writes: each those of a bucket of its own, of two.
_OF_STREAM = {
    name: [i for i in range(9) if bucket_ids(pa.array([str(i)]), ("id",), 2)[0] == number]
    for number, name in enumerate(("w1", "w2"))
}


def _stream(world: World, name: str, rounds: int) -> Actor:
    """A writer that says what it will write, so that another one commits beside it."""
    yield "start"
    table = world.opened(name)
    table.rollback_pending()
    me = name.removeprefix("next ")
    for number in range(rounds):
        changes, done = upserts(_OF_STREAM[me], 100 + number, me), False
        while not done:
            yield "refresh"
            table.refresh()
            yield "begin"
            written = groups(table, changes)
            intent = Intent.of_groups(GroupIntent(one.partition_path, one.file_id) for one in written)
            try:
                instant = table.begin(intent)
            except OvertakenError:
                continue
            yield "write"
            results = write(table, instant, changes)
            done = (yield from committed(table, instant, results)) is not None


def _clusterer(world: World, name: str, rounds: int) -> Actor:
    """Clusterings; first those that the dead have planned."""
    yield "start"
    table, config = world.opened(name), clustering("id")
    table.rollback_pending()
    for _ in range(rounds):
        yield "schedule"
        table.refresh()
        requested = next(iter(waiting(table, of_hudi=False)), None) or schedule(table, config)
        if requested is None:
            continue
        yield "prepare"
        job = prepare(table, requested, config)
        if job is None:
            continue
        yield "execute"
        made = execute(job, serially)
        yield "complete"
        complete(table, job, made)


#: Process of the model -> its role there, and what it does here.
ROLES: Mapping[str, tuple[str, Part]] = {
    "w1": ("writer", _writer),
    "w2": ("writer", _writer),
    "k": ("compactor", compactor),
    "l": ("clusterer", _clusterer),
    "c": ("cleaner", cleaner),
    "a": ("archiver", partial(archiver, config=_LEAVES_ONE)),
    "x": ("restorer", _restorer),
}


@dataclass
class TracedWorld(World):
    """A table whose store is observed. ``dying``: by owner, before or after which of its calls it dies."""

    observer: Observer = field(default_factory=Observer)
    dying: dict[str, tuple[int, bool]] = field(default_factory=dict)

    @property
    def index(self) -> MetadataConfig | None:
        """Kept without upkeep."""
        return _INDEX if self.indexed else None

    def storage(self, owner: str) -> Storage:
        """Watched; a dead process's successor acts as itself."""
        at, lost = self.dying.get(owner, (None, False))
        inner, by = super().storage(owner), (owner.removeprefix("next "),)
        return Watched(inner, by, self.observer, Life(at, lost, lambda: self._died(owner, by)))

    def _died(self, owner: str, by: tuple[str, ...]) -> None:
        """What is known of the dead at once here: its heartbeats and its lock are over."""
        self.bury(owner)
        if self.observer.holder == by:
            (self.path / LOCK_PATH).unlink(missing_ok=True)
        self.observer.died(by)


@dataclass(frozen=True)
class Cast:
    """Who works on a table, and who of them dies.

    Args:
        rounds: by process.
        dying: the processes of which one dies at one of its calls, in turn by run; None if nobody does.
        each_call: whether it dies at the calls one after the other, by run: before a call, then after it.
        streams: whether the writers are streams side by side, under the policy ``row``.
        then: by process the rounds that begin when all those before have ended.
        indexed: whether the table has a metadata table.
        looks_up: whether its keys are looked up, so that rows may go to any file group.
    """

    rounds: Mapping[str, int]
    dying: str | tuple[str, ...] | None = None
    each_call: bool = False
    streams: bool = False
    then: Sequence[Mapping[str, int]] = ()
    indexed: bool = True
    looks_up: bool = False

    @property
    def names(self) -> list[str]:
        """The processes."""
        named = [name.removeprefix("next ") for together in (self.rounds, *self.then) for name in together]
        return list(dict.fromkeys(named))

    @property
    def mortal(self) -> tuple[str, ...]:
        """The processes that may die."""
        return (self.dying,) if isinstance(self.dying, str) else self.dying or ()

    def case(self) -> Case:
        """The histories of the model in which such runs must be found."""
        return Case(
            "-".join(self.names),
            "traces",
            {name: ROLES[name][0] for name in self.names},
            rounds={name: _SERVICES if name in ("c", "a", "x", "l") else 9 for name in self.names},
            indexed=self.indexed,
            apart=True,
            crashes=int(self.dying is not None),
            mortal=self.mortal,
            groups=(1, 2) if self.streams else (1,),
            wants={"w1": (1,), "w2": (2,)} if self.streams else {},
            policy="row" if self.streams else "queue",
            max_time=99,
        )

    def trace(self, place: Path, seed: int) -> Trace:
        """One run, whose turns change at single storage calls by chance; a dead process has a successor."""
        kind = _LOOKED_UP if self.looks_up else config(buckets=1 + self.streams, partitioned=not self.streams)
        HudiTable.create(storage_at(place), kind, SCHEMA, _INDEX if self.indexed else None)
        observer = Observer(looks_up=self.looks_up, by_bucket=self.streams)
        world = TracedWorld(place, indexed=self.indexed, observer=observer, policy="row" if self.streams else "queue")
        if mortal := self.mortal:
            at = seed // 2 if self.each_call else 3 + 7 * (seed // len(mortal)) % 37
            world.dying[mortal[seed % len(mortal)]] = (at, seed % 2 == 0)
        for together in (self.rounds, *self.then):
            failures = run_by_calls(world, self._parts(together), seed).failures
            for name in [name for name, failure in failures.items() if isinstance(failure, Killed)]:
                del failures[name]
                failures |= run_by_calls(world, self._parts({f"next {name}": 1}), seed).failures
            assert not failures, failures
        return world.observer.seen

    def _parts(self, rounds: Mapping[str, int]) -> dict[str, tuple[Part, int]]:
        parts: dict[str, tuple[Part, int]] = {}
        for name, number in rounds.items():
            role, part = ROLES[name.removeprefix("next ")]
            if role == "writer":
                part = _stream if self.streams else _looking_up if self.looks_up else part
            parts[name] = (part, number)
        return parts


def module(case: Case, traces: Sequence[Trace]) -> str:
    """The module in which TLC looks for traces among the histories of a case."""
    text = ",\n".join("<<" + ",\n".join(map(str, with_rooms(trace))) + ">>" for trace in traces)
    of_case = case.module(_NAME).replace("EXTENDS Commit", "EXTENDS Traces")
    return of_case.replace("\n====", f"\nASSUME TLCSet(1, <<\n{text}\n>>)\n====")


def followed(case: Case, traces: Sequence[Trace], *, of_lake: bool = False, seen_deaths: bool = True) -> list[int]:
    """By trace, how many of its calls the model can make.

    Args:
        case, traces: the histories, and what is looked for among them.
        of_lake: whether they are of a lake's works.
        seen_deaths: whether the traces tell each death; else a process may end its work at any moment.

    Raises NoToolsError, ModelError.
    """
    text = case.settings().replace("SPECIFICATION Spec", "SPECIFICATION TraceSpec")
    text = (
        text.replace("CONSTRAINT Bounded", "CONSTRAINT Told")
        + _FINER
        + _OF_A_LAKE * of_lake
        + _UNSEEN * (not seen_deaths)
    )
    printed = said(_NAME, module(case, traces), text)
    if "No error has been found" not in printed:
        raise ModelError(f"TLC did not come to an end: {printed[-2000:]}")
    reached = [0] * len(traces)
    for trace, at in _REACHED.findall(printed):
        reached[int(trace) - 1] = max(reached[int(trace) - 1], int(at))
    return reached


#: After the first commits, so that the service finds something while a writer commits.
_CLEANED = ({"k": 1}, {"next w1": 1}, {"c": 1, "next w1": 1})
_ARCHIVED = ({"k": 1}, {"next w1": 2}, {"a": 1, "next w1": 1})
#: Who works on a table, and how many runs ``make proofs`` takes of each.
CASTS: Mapping[str, tuple[Cast, int]] = {
    "two writers": (Cast({"w1": 2, "w2": 2}), 12),
    "a writer and a compactor": (Cast({"w1": 2, "k": 2}), 12),
    "two writers, one dies": (Cast({"w1": 2, "w2": 2}, "w1"), 40),
    "a writer and a compactor that dies": (Cast({"w1": 2, "k": 2}, "k"), 40),
    "a writer, a compactor and a cleaner": (Cast({"w1": 3, "k": 3, "c": 30}), 4),
    "a writer, a compactor and a cleaner that dies": (Cast({"w1": 3, "k": 3, "c": 30}, "c"), 4),
    "a compactor and a writer that dies": (Cast({"w1": 2, "k": 2}, "w1"), 40),
    "a clean beside a writer": (Cast({"w1": 2}, then=_CLEANED), 12),
    "a clean that dies beside a writer": (Cast({"w1": 2}, "c", each_call=True, then=_CLEANED), 40),
    "an archival beside a writer": (Cast({"w1": 2}, then=_ARCHIVED, indexed=False), 12),
    "an archival that dies beside a writer": (Cast({"w1": 2}, "a", True, then=_ARCHIVED, indexed=False), 40),
    "archival": (Cast({"w1": 2}, then=({"k": 1}, {"next w1": 2}, {"a": 1}, {"next w1": 1}), indexed=False), 2),
    "a writer and a clustering": (Cast({"w1": 3, "l": 2}, looks_up=True), 12),
    "a restore": (Cast({"w1": 3, "k": 1}, then=({"x": 1}, {"next w1": 1})), 8),
    "a restore beside a writer": (Cast({"w1": 3}, then=({"x": 1, "next w1": 1},)), 12),
    "a restore that dies": (Cast({"w1": 3}, "x", then=({"x": 1}, {"next w1": 1})), 12),
    "rounds": (Cast({"w1": 2, "w2": 2}, ("w1", "w2")), 24),
    "streams": (Cast({"w1": 2, "w2": 2}, "w1", streams=True), 24),
    "service": (Cast({"w1": 2, "w2": 1, "k": 1}, ("w1", "w2", "k")), 6),
    "crash points of a writer": (Cast({"w1": 2}, "w1", each_call=True), 60),
    "crash points of a compaction": (Cast({"w1": 2}, "k", each_call=True, then=({"k": 1}, {"next w1": 1})), 60),
    "crash points of a restore": (Cast({"w1": 3}, "x", each_call=True, then=({"x": 1}, {"next w1": 1})), 80),
}


def recorded(cast: Cast, place: Path, seeds: Iterable[int]) -> list[Trace]:
    """The traces of runs below a directory, each once however many runs have it."""
    with pytest.MonkeyPatch.context() as patch:
        without_pools(patch)
        return list(dict.fromkeys(tuple(cast.trace(place / str(seed), seed)) for seed in seeds))


def unlike(case: Case, traces: Sequence[Trace], *, of_lake: bool = False, seen_deaths: bool = True) -> list[str]:
    """Which traces are no histories of the model, and the first call that it cannot make, in words. The control: the
    first trace without one of its calls is none. The arguments of ``followed``."""
    all_of_it = [*traces, (broken := without_a_call(traces[0]))]
    *reached, control = followed(case, all_of_it, of_lake=of_lake, seen_deaths=seen_deaths)
    found = [
        f"trace {n}, call {at + 1}: {trace[at]}"
        for n, (at, trace) in enumerate(zip(reached, traces, strict=True))
        if at < len(trace)
    ]
    return [*found, *(["the control, with a call left out, is a history too"] if control == len(broken) else [])]


def without_a_call(trace: Trace) -> Trace:
    """The trace without one in its middle that the model cannot leave out."""
    middle = len(trace) // 2
    needed = [
        n
        for n in range(1, len(trace) - 1)
        if not (trace[n].soft or any(seen.died for seen in trace[n - 1 : n + 2]))
        and trace[n + 1].shows != trace[n - 1].shows
    ]
    left_out = min(needed, key=lambda n: abs(n - middle))
    return [*trace[:left_out], *trace[left_out + 1 :]]
