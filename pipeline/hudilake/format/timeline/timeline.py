"""The active timeline of a table, kept between batches and brought up to date by listing only its end.

The range of a refresh. Names sort by requested time, so a listing may start anywhere. It starts at the oldest instant
that was pending at the last refresh (a foreign writer may complete it at any time, and its completed file sorts under
that old time), and at least LOOKBACK_MS before the newest instant of the last listing (another machine's clock may be
behind ours, so its instant may be older than a known one). Our own instants since do not move it: another writer may
have begun before them, unseen. A pending instant that is no longer listed was rolled back and is removed.
It also starts at every write that was rolled back in the last LATE_MS: the last call of its dead process may be carried
out later, and readers believe the completed file until a writer has seen and deleted it (``late_completion``).
A refresh misses an instant that is older than that window and began and ended entirely between two refreshes.
LOOKBACK_MS is 25 times the clock skew that Hudi's own writers allow (200 ms); with a wider window every commit of a
fast stream lists more names.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from hudilake.clock import format_instant, parse_instant
from hudilake.format.timeline.commit_metadata import CLUSTER, SCHEMA_KEY, CommitMetadata, keys_within
from hudilake.format.timeline.history import History
from hudilake.format.timeline.instant import (
    COMMIT,
    COMPLETED_ACTIONS,
    REPLACE_COMMIT,
    RESTORE,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
    known_instant,
    timeline_directory,
)
from hudilake.storage.abilities import list_names
from hudilake.storage.at_once import at_once
from hudilake.storage.base import Storage, StorageNotFoundError

LOOKBACK_MS = 5_000
#: As long as Hudi waits for a silent writer by default (its heartbeat's timeout): no store keeps a call longer.
LATE_MS = 600_000
_METADATA_KEPT = 64
#: Partition path and file id.
FileGroupId: TypeAlias = tuple[str, str]


class Timeline:
    """The instants of one table (the data table or the metadata table), each in its furthest state.

    Loading reads names only; a commit's body is read on first use, and the last few are kept.
    """

    def __init__(self, storage: Storage, layout: int = 2) -> None:
        """``layout``: of the timeline, 1 for a table of version 6."""
        self._storage = storage
        self.layout = layout
        self._pending: dict[tuple[str, str], Instant] = {}
        self._completed: dict[tuple[str, str], Instant] = {}
        self._writes: list[Instant] = []  # completed write actions, ascending
        self._latest = ""
        self._listed_to = ""  # the greatest requested time of a listing
        #: The requested time of a write that was rolled back -> a time of this table by which it was.
        self._undone: dict[str, str] = {}
        #: Completed files of the last listing whose instants have another one with a later completion time.
        self.outdated: list[Instant] = []
        self._metadata: dict[str, CommitMetadata] = {}
        self._history: History | None = None
        #: What each completed replacecommit, by its file name, has replaced.
        self._replaced: dict[str, tuple[FileGroupId, ...]] = {}
        #: The keys of extraMetadata of the writes whose bodies were read, by file name; equal sets are one object.
        self._extra_keys: dict[str, frozenset[str]] = {}
        self._key_sets: dict[frozenset[str], frozenset[str]] = {}
        #: Keys that the extraMetadata of writes lacks for certain, by file name; equal sets are one object.
        self._lacks: dict[str, frozenset[str]] = {}

    def __getstate__(self) -> dict[str, object]:
        """In a task: the instants without their bodies, which are read again if they are needed."""
        return {**vars(self), "_metadata": {}, "_history": None, "_extra_keys": {}, "_key_sets": {}, "_lacks": {}}

    @classmethod
    def load(cls, storage: Storage, layout: int = 2) -> Timeline:
        """List the whole active timeline under ``storage``'s root; empty if there is none. Raises UnsupportedError for
        an instant that is not understood, StorageError."""
        timeline = cls(storage, layout)
        timeline._take(timeline._list(None))
        return timeline

    @property
    def logs_name_base(self) -> bool:
        """Whether log files are named by the instant of the base file that they follow."""
        return self.layout == 1

    @contextlib.contextmanager
    def taken_in(self) -> Iterator[None]:
        """What is listed inside stays only if all inside succeeds: else the next refresh returns it again."""
        before = self._pending.copy(), self._completed.copy(), self._writes.copy(), self._latest, self._listed_to
        outdated, undone = self.outdated, self._undone.copy()
        try:
            yield
        except BaseException:
            self._pending, self._completed, self._writes, self._latest, self._listed_to = before
            self.outdated, self._undone = outdated, undone
            raise

    def refresh(self, *, whole: bool = False) -> list[Instant]:
        """List the end of the timeline (see the docstring of this module), or the whole. One that fails changes
        nothing.

        Returns the instants that are new or have changed state since the last refresh, oldest first, without our own
        (``record``). The whole timeline is listed (``reload``) during and after a restore, if others have archived all
        instants known here, and if others have rolled back the oldest write: they may have made one before it.
        """
        start, last, first = None if whole else self._window_start(), self.last_completed(), self._first_write()
        with self.taken_in():
            listed = self._list(start)
            changed = self._take(listed)
            # Commits are archived from the oldest on: if the last known one is gone, unseen later ones may be gone too.
            archived = last is not None and last.requested_time > (start or "") and last.identity not in listed
            rolled_back = first is not None and first != self._first_write()
            restored = any(instant.action == RESTORE for instant in (*changed, *self._pending.values()))
            if archived or rolled_back or restored:
                self.reload()
        return changed

    def reload(self) -> None:
        """List the whole active timeline, and remove the completed instants that a restore took back."""
        listed = self._list(None)
        self.archived([i for identity, i in self._completed.items() if listed.get(identity) != i])
        self._take(listed)

    def completed(self) -> list[Instant]:
        """The completed commits, deltacommits and replacecommits by requested time, oldest first. Do not change it."""
        return self._writes

    def newest_first(self) -> list[Instant]:
        """The same instants by completion time, the last one first. Commits of several writers may complete in another
        order than they were requested in."""
        return sorted(self._writes, key=lambda write: (write.completion_time or "", write.requested_time), reverse=True)

    def completed_actions(self, actions: Collection[str]) -> list[Instant]:
        """The completed instants of those actions (``clean``, ``rollback``...), oldest first."""
        return sorted(i for i in self._completed.values() if i.action in actions)

    def pending(self) -> list[Instant]:
        """All instants that are requested or inflight, oldest first."""
        return sorted(self._pending.values())

    def pending_times(self) -> set[str]:
        """The requested times of pending instants, but for savepoints: theirs are of the completed writes that they
        hold."""
        return {instant.requested_time for instant in self._pending.values() if instant.action != SAVEPOINT}

    def last_completed(self) -> Instant | None:
        """The completed write with the newest requested time."""
        return self._writes[-1] if self._writes else None

    def find(self, requested_time: str) -> Instant | None:
        """The instant of that requested time, completed before pending; None if the active timeline has none."""
        for instants in (self._completed, self._pending):
            for action in COMPLETED_ACTIONS:
                if (instant := instants.get((requested_time, action))) is not None:
                    return instant
        return None

    def latest_time(self) -> str | None:
        """The greatest requested or completion time seen: new times must lie after it."""
        return self._latest or None

    def record(self, instant: Instant) -> None:
        """Add an instant whose file this process created."""
        identity = instant.identity
        self._latest = max(self._latest, instant.completion_time or instant.requested_time)
        if not instant.completed:
            self._pending[identity] = instant
            return
        self._pending.pop(identity, None)
        if instant.action in WRITE_ACTIONS:
            if identity in self._completed:
                self._writes = [write for write in self._writes if write.identity != identity]
            bisect.insort(self._writes, instant)
        self._completed[identity] = instant

    def forget(self, instant: Instant) -> None:
        """Remove a pending instant whose files this process deleted."""
        self._pending.pop(instant.identity, None)
        self._note_undone(instant.identity)

    def note_rollbacks(self, writes: Mapping[str, str]) -> None:
        """Look for completed files of writes that others have rolled back, as for those that were pending here.

        ``writes``: requested time of a write -> requested time of its rollback.
        """
        self._undone |= writes

    def archived(self, instants: Collection[Instant]) -> None:
        """Remove completed instants that have left the active timeline."""
        archived = {instant.identity for instant in instants}
        self._completed = {identity: i for identity, i in self._completed.items() if identity not in archived}
        self._writes = [i for i in self._writes if i.identity not in archived]
        for instant in instants:
            self._extra_keys.pop(instant.file_name, None)
            self._lacks.pop(instant.file_name, None)
        self._history = None

    def is_completed(self, requested_time: str) -> bool:
        """Whether files and blocks of that instant are visible: it completed, or is older than the active timeline."""
        if any((requested_time, action) in self._completed for action in WRITE_ACTIONS):
            return True
        first = self._first_write()
        return first is not None and requested_time < first

    def completion_time(self, requested_time: str) -> str | None:
        """When the write of that requested time completed; None while it is pending or unknown.

        Archived instants are looked up in the history; one that the history lacks counts as completed when requested.
        """
        for action in WRITE_ACTIONS:
            if (instant := self._completed.get((requested_time, action))) is not None:
                return instant.completion_time
        if not self.is_completed(requested_time):
            return None
        return self.history().completion_time(requested_time) or requested_time

    def history(self) -> History:
        """The archived timeline, read once."""
        if self._history is None:
            self._history = History.load(self._storage)
        return self._history

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """The body of a completed write, from the history if another process has archived it since.

        Raises CorruptDataError if it cannot be read, StorageNotFoundError if it is gone.
        """
        metadata = self._metadata.get(instant.file_name)
        if metadata is None:
            parse = CommitMetadata.from_json if instant.layout == 1 else CommitMetadata.from_bytes
            metadata = parse(self._body(instant), instant.path)
            self.remember(instant, metadata)
        return metadata

    def newest_schema(self) -> str | None:
        """The Avro schema of the write that was requested last, as Hudi's readers take it; None if no write has one.

        Errors as ``commit_metadata``.
        """
        for instant in reversed(self._writes):
            if text := self.commit_metadata(instant).extra.get(SCHEMA_KEY):
                return text
        return self.history().newest_extra(SCHEMA_KEY)

    def extra_of(self, instant: Instant, key: str) -> Mapping[str, str] | None:
        """The extraMetadata of a completed write that has a key; None if it lacks it. A body is read once, however many
        keys are asked for. Errors as ``commit_metadata``."""
        keys = self._extra_keys.get(instant.file_name)
        if (keys is not None and key not in keys) or key in self._lacks.get(instant.file_name, ()):
            return None
        extra = self.commit_metadata(instant).extra
        if keys is None:
            self._extra_keys[instant.file_name] = self._one_set(frozenset(extra))
        return extra if key in extra else None

    def look_for(self, keys: Collection[str]) -> None:
        """Note which of these keys of extraMetadata each completed write lacks whose body was not read. All bodies are
        read at once and none is taken apart, so that ``extra_of`` reads those that have a key. Raises StorageError."""
        known = self._metadata.keys() | self._extra_keys.keys()
        unread = [write for write in self._writes if write.layout == 2 and write.file_name not in known]
        bodies = at_once([partial(self._read, write) for write in unread], reads=self._storage) if unread else []
        encoded = {key.encode(): key for key in keys}
        for write, body in zip(unread, bodies, strict=True):
            if (within := keys_within(body, encoded)) is not None:
                self._lacks[write.file_name] = self._one_set(frozenset(encoded.values()) - {encoded[w] for w in within})

    def _read(self, write: Instant) -> bytes:
        with contextlib.suppress(StorageNotFoundError):  # archived meanwhile
            return self._storage.read(write.path)
        return b""

    def _one_set(self, keys: frozenset[str]) -> frozenset[str]:
        return self._key_sets.setdefault(keys, keys)

    def is_compaction(self, write: Instant) -> bool:
        """Whether a completed write only wrote anew what was there: a commit says so; in a copy-on-write table commits
        write rows. Errors as ``commit_metadata``."""
        return write.action == COMMIT and self.commit_metadata(write).compacted

    def is_clustering(self, write: Instant) -> bool:
        """Whether a completed write only moved rows to other file groups. Errors as ``commit_metadata``."""
        return write.action == REPLACE_COMMIT and self.commit_metadata(write).operation == CLUSTER

    def replaced(self) -> Mapping[FileGroupId, str]:
        """The file groups that completed writes of the active timeline have replaced -> the requested time of that
        write. A read as of that time or later does not see them.

        Raises CorruptDataError for a replacecommit that cannot be read, StorageError.
        """
        replacements: dict[FileGroupId, str] = {}
        for write in self._writes:
            if write.action == REPLACE_COMMIT:
                replacements |= dict.fromkeys(self._groups_replaced_by(write), write.requested_time)
        return replacements

    def _groups_replaced_by(self, write: Instant) -> tuple[FileGroupId, ...]:
        groups = self._replaced.get(write.file_name)
        if groups is None:
            by_partition = self.commit_metadata(write).replaced or {}
            groups = tuple((path, name) for path, names in by_partition.items() for name in names)
            self._replaced[write.file_name] = groups
        return groups

    def _body(self, instant: Instant) -> bytes:
        try:
            return self._storage.read(instant.path)
        except StorageNotFoundError:
            self._history = None
            body = self.history().metadata(instant.requested_time)
            if body is None:
                raise
            return body

    def remember(self, instant: Instant, metadata: CommitMetadata) -> None:
        """Keep the body of a commit that was just written; the oldest kept body is removed if there are too many."""
        if len(self._metadata) >= _METADATA_KEPT:
            del self._metadata[next(iter(self._metadata))]
        self._metadata[instant.file_name] = metadata

    def _list(self, start_after: str | None) -> dict[tuple[str, str], Instant]:
        furthest: dict[tuple[str, str], Instant] = {}
        self.outdated = []
        for name in list_names(self._storage, timeline_directory(self.layout), start_after):
            instant = known_instant(name, self.layout)
            if instant is None:
                continue
            identity = instant.identity
            previous = furthest.get(identity)
            if previous is None or (instant.completed and not previous.completed):
                furthest[identity] = instant
                continue
            if previous.completed and instant.completed:
                self.outdated.append(min(previous, instant, key=_progress))
            if _progress(instant) > _progress(previous):
                furthest[identity] = instant
        return furthest

    def _take(self, listed: dict[tuple[str, str], Instant]) -> list[Instant]:
        self._listed_to = max([self._listed_to, *(time for time, _ in listed)])
        for identity in [i for i in self._pending if i not in listed]:
            del self._pending[identity]
            self._note_undone(identity)
        changed = [
            instant
            for identity, instant in listed.items()
            if self._completed.get(identity) != instant and self._pending.get(identity) != instant
        ]
        for instant in sorted(changed):
            self.record(instant)
        return sorted(changed)

    def _window_start(self) -> str | None:
        if not self._latest:
            return None
        self._undone = {time: by for time, by in self._undone.items() if by >= earlier(self._latest, LATE_MS)}
        starts = [earlier(self._listed_to, LOOKBACK_MS), *self._undone, *(time for time, _ in self._pending)]
        return min(starts) or None

    def _note_undone(self, identity: tuple[str, str]) -> None:
        time, action = identity
        if action in WRITE_ACTIONS:
            self._undone[time] = self._latest

    def _first_write(self) -> str | None:
        firsts = [i.requested_time for i in self._writes[:1]]
        firsts += [time for time, action in self._pending if action in WRITE_ACTIONS]
        return min(firsts, default=None)


def _progress(instant: Instant) -> tuple[int, str]:
    return ("requested", "inflight", "completed").index(instant.state.value), instant.completion_time or ""


def earlier(instant: str, by_ms: int) -> str:
    """An instant earlier by that much; "" for a time that is not a date (the metadata table starts at 000...0)."""
    try:
        return format_instant(max(parse_instant(instant) - by_ms, 0))
    except (ValueError, OverflowError):
        return ""
