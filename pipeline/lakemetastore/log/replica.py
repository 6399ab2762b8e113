"""The state of a log as this process has it: from a snapshot and the entries behind it, kept up by further entries."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, NoReturn, TypeVar

import msgspec

from hudilake.clock import monotonic_s
from hudilake.errors import CorruptDataError
from hudilake.storage.base import StorageError
from lakemetastore.log.fold import Fold, VersionedChange
from lakemetastore.log.records import (
    ChangeRecord,
    DamagedError,
    EntryRecord,
    read_entry,
    read_snapshot,
    without_changes,
)
from lakemetastore.log.stores.base import Entry, LogStore, TrimmedError

S = TypeVar("S")
E = TypeVar("E")

_log = logging.getLogger(__name__)
#: Of so many entries a process, and a snapshot, know whose they are.
REMEMBERED: Final = 1024
_RELOADS: Final = 8
_RELOAD_PAUSE_S: Final = 0.01
_REPAIR: Final = (
    "restore it from a backup of the store; without one, delete the log: the metastore is built again from the lake's "
    "tables by `binlake metastore rebuild`, definitions that only the metastore had are lost"
)


class _ForeignError(Exception):
    """An entry does not follow on the one that this process has: the log was trimmed or made anew in between."""


@dataclass(frozen=True, slots=True)
class LogView(Generic[S]):
    """The state at a version.

    Args:
        state, version: of the log.
        ids: of the entries up to the version, the newest last, at most ``REMEMBERED``.
        records: the entries up to the version that this process has read or written, without their changes, the newest
            last; at most ``REMEMBERED``.
        snapshot: the version of the snapshot that this view began with; 0 for none.
        snapshot_bytes: its size.
        tail_bytes: the size of the entries since.
        pending: changes that the state has and the version has not: those of an entry that is being made.
    """

    state: S
    version: int = 0
    ids: tuple[bytes, ...] = ()
    records: tuple[EntryRecord, ...] = ()
    snapshot: int = 0
    snapshot_bytes: int = 0
    tail_bytes: int = 0
    pending: tuple[ChangeRecord, ...] = ()

    @property
    def last_id(self) -> bytes:
        """The id of the newest entry; empty if there is none."""
        return self.ids[-1] if self.ids else b""

    def id_of(self, version: int) -> bytes | None:
        """The id of a version's entry; None if it is not remembered."""
        back = self.version - version
        return self.ids[-1 - back] if 0 <= back < len(self.ids) else None

    def with_pending(self, state: S, pending: Sequence[ChangeRecord]) -> LogView[S]:
        """The same version with the state of an entry that is being made."""
        return replace(self, state=state, pending=tuple(pending))

    def after(self, state: S, records: Sequence[EntryRecord], size: int) -> LogView[S]:
        """The view some entries later, whose bytes have that size."""
        return replace(
            self,
            state=state,
            version=self.version + len(records),
            ids=(*self.ids, *(record.id for record in records))[-REMEMBERED:],
            records=(*self.records, *map(without_changes, records))[-REMEMBERED:],
            tail_bytes=self.tail_bytes + size,
        )


class Replica(Generic[S, E]):
    """What a process has of a log. It is shared by the process's threads.

    Args:
        store: of the log.
        log: its name.
        fold: how its changes become a state.
    """

    def __init__(self, store: LogStore, log: str, fold: Fold[S, E]) -> None:
        self._store, self._name, self._fold = store, log, fold
        self._view: LogView[S] = LogView(fold.empty())
        self._refreshing = threading.Lock()
        self._guard = threading.Lock()
        self._begun = self._ended = 0
        self._checked_s = float("-inf")

    @property
    def view(self) -> LogView[S]:
        """Returns the newest version that this process has; asks no store."""
        return self._view

    def age_s(self) -> float:
        """Seconds since the newest version was asked for and answered."""
        return monotonic_s() - self._checked_s

    def refresh(self) -> LogView[S]:
        """The newest version at a moment after the call. Threads that wait for one another share an answer.

        Raises StorageError, and CorruptDataError for an entry that cannot be read."""
        begun = self._begun
        with self._refreshing:
            # Who came while another one asked may take the answer of one who asked later.
            if self._ended <= begun:
                self._begun += 1
                now, base = monotonic_s(), self._view
                view = self._newest(base)
                with self._guard:
                    # Meanwhile this process may have written an entry of its own.
                    if self._view is base or view.version > self._view.version:
                        self._view = view
                    self._checked_s = now
                self._ended = self._begun
            return self._view

    def advance(self, before: LogView[S], after: LogView[S]) -> None:
        """Take the view that an entry of this process gives, if nothing newer came."""
        with self._guard:
            if self._view.version <= before.version:
                self._view, self._checked_s = after, monotonic_s()

    def entries(self, after: int, limit: int | None = None) -> list[EntryRecord]:
        """Entries from the store. Raises TrimmedError, StorageError, CorruptDataError."""
        return [self._entry(entry) for entry in self._store.read(self._name, after, limit)]

    def changes(self, version: int, record: EntryRecord) -> list[VersionedChange[E]]:
        """The changes of an entry. Raises CorruptDataError."""
        try:
            return [VersionedChange(version, self._fold.decode(each.change)) for each in record.changes]
        except msgspec.MsgspecError as error:
            self._damaged("entry", version, error)

    def _newest(self, view: LogView[S]) -> LogView[S]:
        for attempt in range(_RELOADS):
            try:
                return self._followed(view if view.version else self._loaded())
            except (TrimmedError, _ForeignError):
                view = LogView(self._fold.empty())
                if attempt:
                    # A log of files that is being deleted has gaps for a moment.
                    time.sleep(_RELOAD_PAUSE_S * 2**attempt)
        raise StorageError(
            "the log is trimmed faster than it can be read, or its entries do not follow on each other",
            do_next="try again; if it stays so, restore the log from a backup of the store",
            log=self._name,
            store=self._store.uri,
        )

    def _loaded(self) -> LogView[S]:
        """The view of the newest snapshot that can be read."""
        stored_snapshot, damage = self._store.snapshot(self._name), None
        while stored_snapshot is not None:
            try:
                record = read_snapshot(stored_snapshot.data)
                state = self._fold.load(record.state)
            except (DamagedError, msgspec.MsgspecError) as error:
                damage = stored_snapshot.version, error
                _log.warning("snapshot %d of log %s is damaged: %s", stored_snapshot.version, self._name, error)
                stored_snapshot = self._store.snapshot(self._name, before=stored_snapshot.version)
            else:
                return LogView(
                    state, stored_snapshot.version, record.ids, (), stored_snapshot.version, len(stored_snapshot.data)
                )
        if damage is not None and not self._is_whole():
            self._damaged("snapshot", *damage)
        return LogView(self._fold.empty())

    def _is_whole(self) -> bool:
        try:
            return bool(self._store.read(self._name, 0, 1))
        except TrimmedError:
            return False

    def _followed(self, view: LogView[S]) -> LogView[S]:
        entries = self._read(view.version)
        if not entries:
            return view
        records, changes, last = [], [], view.last_id
        for entry in entries:
            record = self._entry(entry)
            if record.before != last:
                raise _ForeignError
            records.append(record)
            changes += self.changes(entry.version, record)
            last = record.id
        try:
            state = self._fold.apply(view.state, changes)
        except Exception as error:
            self._damaged("entry", entries[-1].version, error)
        return view.after(state, records, sum(len(entry.data) for entry in entries))

    def _read(self, after: int) -> list[Entry]:
        try:
            return self._store.read(self._name, after)
        except TrimmedError:
            raise
        except StorageError:
            # A server that was started again has closed the connections of its clients.
            return self._store.read(self._name, after)

    def _entry(self, entry: Entry) -> EntryRecord:
        try:
            return read_entry(entry.data)
        except DamagedError as error:
            self._damaged("entry", entry.version, error)

    def _damaged(self, kind: str, version: int, error: Exception) -> NoReturn:
        raise CorruptDataError(
            f"the {kind} of a log cannot be read: {error}",
            do_next=_REPAIR,
            log=self._name,
            version=version,
            store=self._store.uri,
        ) from error
