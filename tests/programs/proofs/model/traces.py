"""Traces of real runs: what a table's store showed after each call that changed it, for TLC to find in the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from hudilake.format.files.names import parse_base_name, parse_log_name
from hudilake.format.timeline.history import HISTORY_PATH
from hudilake.format.timeline.instant import TIMELINE_PATH, Instant, State, parse_name
from hudilake.locking.file_lock import LOCK_PATH
from hudilake.metadata.records.layout import METADATA_PATH
from hudilake.storage.base import Storage
from hudilake.storage.passing import PassingStorage
from tests.programs.proofs.model.case import Value, tla

#: Actions of the timeline in the model's words.
_ACTIONS = {
    "deltacommit": "write",
    "compaction": "comp",
    "commit": "comp",
    "clustering": "clus",
    "replacecommit": "clus",
    "rollback": "roll",
    "clean": "clean",
    "restore": "rest",
}
#: Names the manifest of the history that counts; without it the newest one does.
_VERSION = f"{HISTORY_PATH}/_version_"
_STATES = {State.REQUESTED: "req", State.INFLIGHT: "inf", State.COMPLETED: "done"}


@dataclass(frozen=True)
class Shown:
    """An instant of the active timeline, as ``Traces.tla`` has it.

    Args:
        act, st: action and state.
        logs, bases: the file groups of its data files. The base file without rows that a commit makes beside its log
            files is none of the model's.
        told: whether the metadata table has its entry.
    """

    act: str
    st: str
    logs: frozenset[int] = frozenset()
    bases: frozenset[int] = frozenset()
    told: bool = False

    def __str__(self) -> str:
        fields: dict[str, Value] = {"act": self.act, "st": self.st, "told": self.told}
        fields |= {"logs": self.logs, "bases": self.bases}
        return "[" + ", ".join(f"{name} |-> {tla(value)}" for name, value in fields.items()) + "]"


@dataclass(frozen=True)
class Seen:
    """What the store shows after a call.

    Args:
        by: whose call it was: the processes of the model that it may be.
        soft: whether it is one of several that are one step of the model.
        shows: the instants in their order.
        stray: how many log files belong to none of them.
        died: whether it is no call: the process died, and the store shows what it showed before.
        times: of the instants that it shows.
        room: how many instants that are requested later come between the new one and the one before it.
    """

    by: tuple[str, ...]
    soft: bool
    shows: tuple[Shown, ...]
    stray: int
    died: bool = False
    times: tuple[str, ...] = field(default=(), compare=False)
    room: int = field(default=0, compare=False)

    def __str__(self) -> str:
        shows = ", ".join(map(str, self.shows))
        fields: dict[str, Value] = {"by": self.by, "soft": self.soft, "stray": self.stray, "died": self.died}
        fields["room"] = self.room
        told = ", ".join(f"{name} |-> {tla(value)}" for name, value in fields.items())
        return f"[{told}, shows |-> <<{shows}>>]"


#: What was seen from the beginning of a table on.
Trace = Sequence[Seen]


def with_rooms(trace: Trace) -> Trace:
    """A trace whose calls know how many instants come later and have earlier times: clocks are apart."""
    first = {time: at for at, seen in reversed(list(enumerate(trace))) for time in seen.times}
    found = []
    for at, seen in enumerate(trace):
        rooms = [0]
        for new in [time for time in seen.times if first[time] == at]:
            before = max((time for time in first if time < new and first[time] < at), default="")
            rooms.append(sum(before < time < new and first[time] > at for time in first))
        found.append(replace(seen, room=max(rooms)))
    return found


@dataclass
class Observer:
    """Follows the calls on one table.

    Args:
        seen: what changed.
        holder: who has the lock.
        looks_up: whether a base file that a commit writes has its rows, as in a table whose keys are looked up.
        by_bucket: whether file groups have the numbers of their buckets, from 1, and not of their partitions in the
            order in which these came, with 10 more for each replacecommit that has put their rows into new ones.
    """

    seen: list[Seen] = field(default_factory=list)
    holder: tuple[str, ...] = ()
    looks_up: bool = False
    by_bucket: bool = False
    _files: set[str] = field(default_factory=set)
    _groups: dict[str, int] = field(default_factory=dict)
    _homes: dict[str, int] = field(default_factory=dict)
    #: Replacecommits, and the places of rows that each puts into new file groups.
    _turned: set[tuple[str, int]] = field(default_factory=set)
    #: By instant what its files are, also when it is gone.
    _actions: dict[str, str] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)
    #: Instants whose entries were in a metadata table that a restore has dropped.
    _dropped: set[str] = field(default_factory=set)
    #: What the history has; the deletions that follow show nothing. First its new files, until they are named.
    _archived: set[str] = field(default_factory=set)
    _moving: list[tuple[str, str]] = field(default_factory=list)

    def made(self, by: tuple[str, ...], method: str, path: str) -> None:
        """A call was carried out."""
        if path == LOCK_PATH:
            self.holder = () if method == "delete" else by
        if method == "delete_tree":
            self._files = {name for name in self._files if not name.startswith(f"{path}/")}
        elif method == "delete":
            self._files.discard(path)
        else:
            self._files.add(path)
            self._note(path)
        shows, stray = self._state()
        before = self._newest()
        if (shows, stray) != (before.shows, before.stray):
            times = tuple(sorted(self._instants()))
            self.seen.append(Seen(by, method.startswith("delete") or self._is_first(path), shows, stray, times=times))

    def died(self, by: tuple[str, ...]) -> None:
        """A process is gone."""
        before = self._newest()
        self.seen.append(replace(before, by=by, soft=False, died=True))

    def _newest(self) -> Seen:
        return self.seen[-1] if self.seen else Seen((), False, (), 0)

    def _note(self, path: str) -> None:
        """Readers have no use for the metadata table from a restore's inflight file on, nor for what is archived."""
        instant = parse_name(path.removeprefix(f"{TIMELINE_PATH}/"))
        if instant is not None and instant.action == "restore" and instant.state is State.INFLIGHT:
            self._dropped |= self._told
            self._told = set()
        elif path.startswith(f"{HISTORY_PATH}/") and path.endswith(".parquet"):
            oldest, newest, _ = path.rpartition("/")[2].split("_")
            self._moving.append((oldest, newest))
        elif path == _VERSION or (path.startswith(f"{HISTORY_PATH}/manifest_") and _VERSION not in self._files):
            done = {time for time, one in self._instants().items() if one.completed}
            self._archived |= {time for time in done for first, last in self._moving if first <= time <= last}
            self._moving.clear()

    def _is_first(self, path: str) -> bool:
        """Whether a file is of the empty commit that a rollback makes before a table's first one."""
        name = path.removeprefix(f"{TIMELINE_PATH}/")
        instant = parse_name(name) if name != path else None
        if instant is None or instant.action != "deltacommit":
            return False
        if instant.completed and instant.requested_time in self._data(self._instants())[0]:
            return False
        return bool(self.seen) and any(one.act == "roll" and one.st == "inf" for one in self.seen[-1].shows)

    def _state(self) -> tuple[tuple[Shown, ...], int]:
        instants = self._instants()
        # Archival of the metadata table takes its files away, too.
        kept = {time for time in self._told if time in instants and instants[time].completed}
        known = {i.requested_time for i in self._parsed(f"{METADATA_PATH}/{TIMELINE_PATH}/") if i.completed}
        self._told = told = kept | (known - self._dropped)
        logs, bases, stray = self._data(instants)
        shows = tuple(
            Shown(
                _ACTIONS[instant.action],
                _shown_state(instant),
                frozenset(logs.get(time, ())),
                frozenset(bases.get(time, ()) if _ACTIONS[instant.action] in ("comp", "clus") else ()),
                time in told and _ACTIONS[instant.action] in ("write", "comp", "clus", "clean"),
            )
            for time, instant in sorted(instants.items())
        )
        return shows, stray

    def _instants(self) -> dict[str, Instant]:
        order = list(_STATES)
        instants: dict[str, Instant] = {}
        for instant in self._parsed(f"{TIMELINE_PATH}/"):
            if instant.requested_time in self._archived:
                continue
            known = instants.get(instant.requested_time)
            if known is None or order.index(known.state) < order.index(instant.state):
                instants[instant.requested_time] = instant
        return instants

    def _parsed(self, below: str) -> list[Instant]:
        names = (name.removeprefix(below) for name in self._files if name.startswith(below))
        return [instant for name in names if (instant := parse_name(name)) is not None]

    def _data(self, instants: dict[str, Instant]) -> tuple[dict[str, set[int]], dict[str, set[int]], int]:
        self._actions |= {time: _ACTIONS[one.action] for time, one in instants.items()}
        logs: dict[str, set[int]] = {}
        bases: dict[str, set[int]] = {}
        stray = 0
        for path in sorted(self._files):
            if path.startswith(".hoodie"):
                continue
            partition, _, name = path.rpartition("/")
            if (log := parse_log_name(name)) is not None:
                if self._actions.get(log.instant) in ("comp", "clus"):  # deletes that it states again
                    continue
                logs.setdefault(log.instant, set()).add(self._group(partition, log.file_id, log.instant, instants))
                stray += log.instant not in instants and log.instant not in self._archived
            elif (base := parse_base_name(name)) is not None:
                group = self._group(partition, base.file_id, base.instant, instants)
                is_written = self.looks_up and self._actions.get(base.instant) == "write"
                (logs if is_written else bases).setdefault(base.instant, set()).add(group)
        return logs, bases, stray

    def _group(self, partition: str, file_id: str, instant: str, instants: dict[str, Instant]) -> int:
        if self.by_bucket:
            return 1 + int(file_id[:8])
        if file_id not in self._groups:
            home = self._homes.setdefault(partition, len(self._homes) + 1)
            turns = {time for time, place in self._turned if place == home and self._is_complete(time, instants)}
            if self._actions.get(instant) == "clus":
                turns.add(instant)
                self._turned.add((instant, home))
            self._groups[file_id] = home + 10 * len(turns)
        return self._groups[file_id]

    def _is_complete(self, time: str, instants: Mapping[str, Instant]) -> bool:
        return time in self._archived or (time in instants and instants[time].completed)


def _shown_state(instant: Instant) -> str:
    """The model begins a clean in one step."""
    is_begun = instant.action == "clean" and instant.state is State.INFLIGHT
    return _STATES[State.REQUESTED if is_begun else instant.state]


class Following(Protocol):
    """Who is told of calls."""

    def made(self, by: tuple[str, ...], method: str, path: str) -> None:
        """A call was carried out."""


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Life:
    """How long a process lives.

    Args:
        dies_at: the number of the changing call at which it dies, from 0; None for never.
        lost: whether that call is not carried out.
        died: called when it dies.
        calls: how many it has made.
        is_over: whether it has died. A dead process that is unwound makes no call.
    """

    dies_at: int | None = None
    lost: bool = False
    died: Callable[[], None] = lambda: None
    calls: int = 0
    is_over: bool = False

    def before(self) -> None:
        """A changing call is to be made. Raises Killed."""
        if self.dies_at is not None and (self.calls > self.dies_at or (self.lost and self.calls == self.dies_at)):
            self._die()
        self.calls += 1

    def after(self) -> None:
        """It was made. Raises Killed."""
        if self.dies_at is not None and self.calls > self.dies_at:
            self._die()

    def _die(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.died()
        raise Killed


@dataclass(frozen=True, slots=True)
class Watched(PassingStorage):
    """A storage whose changing calls an observer follows.

    Args:
        by: whose it is.
        observer: sees the calls.
        life: of the process.
    """

    by: tuple[str, ...]
    observer: Following
    life: Life
    name: str = ""

    def create(self, path: str, data: bytes) -> None:
        """Seen if it was created."""
        self.life.before()
        self.inner.create(path, data)
        self._made("create", path)

    def write(self, path: str, data: bytes) -> None:
        """Seen."""
        self.life.before()
        self.inner.write(path, data)
        self._made("write", path)

    def delete(self, path: str) -> bool:
        """Seen."""
        self.life.before()
        was_there = self.inner.delete(path)
        self._made("delete", path)
        return was_there

    def delete_tree(self, prefix: str) -> None:
        """Seen."""
        self.life.before()
        self.inner.delete_tree(prefix)
        self._made("delete_tree", prefix)

    def sub(self, path: str) -> Storage:
        """Of the same process."""
        return Watched(self.inner.sub(path), self.by, self.observer, self.life, f"{self.name}{path}/")

    def _made(self, method: str, path: str) -> None:
        self.observer.made(self.by, method, self.name + path)
        self.life.after()
