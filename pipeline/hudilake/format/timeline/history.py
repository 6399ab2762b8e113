"""The archived part of the timeline: ``timeline/history``, an LSM tree of Parquet files (written by ``history_writer``
and by Hudi's archival).

Completion times decide which file slice an old log file belongs to, and a commit's own keys may have been archived. A
file's name holds the range of its instants, so a lookup of one instant reads one or two files. The footer of a file
that binlake writes holds the newest value of every key of its commits' extraMetadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from hudilake.errors import CorruptDataError
from hudilake.format.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata
from hudilake.format.timeline.instant import TIMELINE_PATH, WRITE_ACTIONS
from hudilake.storage.base import Storage, StorageNotFoundError

HISTORY_PATH = f"{TIMELINE_PATH}/history"
#: The footer's entry: {key: [time, value]} as JSON.
EXTRA_ENTRY = "binlake.extra"

_VERSION_FILE, _MANIFEST = "_version_", re.compile(r"^manifest_(\d+)$")
_FILE = re.compile(r"^(\d+)_(\d+)_(\d+)\.parquet$")
_COMMIT_COLUMNS = ["instantTime", "completionTime", "action", "metadata"]
_FOOTER_END = 8
_FOOTER_GUESS = 1 << 16

#: The time by which an archived commit is newer than others, and its value, of every key of extraMetadata. A value was
#: recorded when its commit completed, but readers take the schema of the commit that was requested last.
Extras = dict[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A file of the tree. Its instants lie between ``first`` and ``last``; ``level`` -1 for a name of another kind."""

    name: str
    size: int
    first: str = ""
    last: str = "~"
    level: int = -1

    @classmethod
    def named(cls, name: str, size: int) -> HistoryFile:
        """The entry of a manifest, with the range and level in its name."""
        match = _FILE.match(name)
        return cls(name, size, match.group(1), match.group(2), int(match.group(3))) if match else cls(name, size)

    @property
    def path(self) -> str:
        """Relative to the table's root."""
        return f"{HISTORY_PATH}/{self.name}"

    def may_hold(self, requested_time: str) -> bool:
        """Whether that instant may be in it."""
        return self.first <= requested_time <= self.last


@dataclass(frozen=True, slots=True)
class ArchivedCommit:
    """A completed commit in the history; ``metadata`` is its Avro container."""

    requested_time: str
    action: str
    metadata: bytes
    completion_time: str


@dataclass
class History:
    """The files named by the newest manifest. Each file is read on first use, and its content is kept."""

    storage: Storage
    entries: tuple[HistoryFile, ...]
    version: int = 0
    _completion: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
    _extras: dict[str, Extras] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, storage: Storage) -> History:
        """Read ``_version_`` and its manifest; empty for a table that was never archived.

        Raises CorruptDataError, StorageError.
        """
        try:
            version = latest_version(storage)
            return cls(storage, read_manifest(storage, version) if version else (), version)
        except StorageNotFoundError:
            return cls(storage, ())
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptDataError(
                f"the timeline's history cannot be read: {error}",
                do_next="restore its manifest from a copy",
                path=HISTORY_PATH,
            ) from error

    @property
    def files(self) -> tuple[str, ...]:
        """The bare names of its files."""
        return tuple(entry.name for entry in self.entries)

    def completion_time(self, requested_time: str) -> str | None:
        """When an archived instant completed; None if it is not in the history."""
        for entry in self.entries:
            if entry.may_hold(requested_time):
                completion_time = self._completion_times(entry).get(requested_time)
                if completion_time is not None:
                    return completion_time
        return None

    def _completion_times(self, entry: HistoryFile) -> dict[str, str]:
        if entry.name not in self._completion:
            table = self.read(entry, ["instantTime", "completionTime"])
            pairs = zip(table["instantTime"].to_pylist(), table["completionTime"].to_pylist(), strict=True)
            self._completion[entry.name] = dict(pairs)
        return self._completion[entry.name]

    def metadata(self, requested_time: str) -> bytes | None:
        """The body of an archived commit; None if it is not in the history."""
        commits = self._commits(entry for entry in self.entries if entry.may_hold(requested_time))
        return commits[requested_time].metadata if requested_time in commits else None

    def commits(self) -> list[ArchivedCommit]:
        """The archived commits and deltacommits, newest first. Reads everything."""
        commits = self._commits(self.entries)
        return [commits[time] for time in sorted(commits, reverse=True)]

    def newest_extra(self, key: str) -> str | None:
        """The value of a key of extraMetadata in the newest archived commit that has it.

        Costs a footer for each file, once; a whole file where Hudi has written it.
        """
        newest: tuple[str, str] | None = None
        for entry in sorted(self.entries, key=lambda entry: entry.last, reverse=True):
            if newest is not None and entry.last < newest[0]:
                break
            candidate = self.extras(entry).get(key)
            if candidate is not None and (newest is None or candidate[0] > newest[0]):
                newest = candidate
        return newest[1] if newest is not None else None

    def extra_values(self, key: str, *further: str) -> Mapping[str, str]:
        """The newest archived values of ``key`` and of ``further`` keys; empty if ``key`` has no value."""
        value = self.newest_extra(key)
        if value is None:
            return {}
        further_values = {name: other for name in further if (other := self.newest_extra(name)) is not None}
        return {key: value, **further_values}

    def extras(self, entry: HistoryFile) -> Extras:
        """The newest values of one file's commits."""
        if entry.name not in self._extras:
            entry_text = self._footer(entry).get(EXTRA_ENTRY.encode())
            if entry_text is not None:
                self._extras[entry.name] = {key: (time, value) for key, (time, value) in json.loads(entry_text).items()}
            else:
                commits = self._commits([entry]).values()
                self._extras[entry.name] = newest_extras(
                    (c.requested_time, c.completion_time, c.metadata) for c in commits
                )
        return self._extras[entry.name]

    def _footer(self, entry: HistoryFile) -> Mapping[bytes, bytes]:
        """The key-value pairs of a file's footer. Only the footer's bytes are read."""
        tail = self.storage.read_range(entry.path, max(0, entry.size - _FOOTER_GUESS), _FOOTER_GUESS)
        length = int.from_bytes(tail[-_FOOTER_END : -_FOOTER_END + 4], "little") + _FOOTER_END
        if length > len(tail):
            tail = self.storage.read(entry.path)
        try:
            # A footer can be parsed alone if the magic bytes of a file's beginning are put before it.
            return pq.read_metadata(pa.BufferReader(b"PAR1" + tail[-length:])).metadata or {}
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(entry, error) from error

    def _commits(self, entries: Iterable[HistoryFile]) -> dict[str, ArchivedCommit]:
        rows = (r for e in entries for r in self.read(e, _COMMIT_COLUMNS).to_pylist())
        return {
            r["instantTime"]: ArchivedCommit(
                r["instantTime"], r["action"], r["metadata"], r["completionTime"] or r["instantTime"]
            )
            for r in rows
            if r["action"] in WRITE_ACTIONS and r["metadata"]
        }

    def read(self, entry: HistoryFile, columns: list[str] | None = None) -> pa.Table:
        """The rows of one file. Raises CorruptDataError, StorageError."""
        try:
            return pq.read_table(pa.BufferReader(self.storage.read(entry.path)), columns=columns)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(entry, error) from error


def newest_extras(commits: Iterable[tuple[str, str, bytes]]) -> Extras:
    """The newest values of commits, given as (requested time, completion time, body)."""
    newest: Extras = {}
    for requested, completed, body in commits:
        for key, value in CommitMetadata.from_bytes(body, f"history of {requested}").extra.items():
            timed = (requested if key == SCHEMA_KEY else completed), value
            newest[key] = max(newest.get(key, timed), timed)
    return newest


def latest_version(storage: Storage) -> int:
    """The number of the newest manifest, 0 if there is none.

    Hudi deletes ``_version_`` before it writes the next one: without it the manifests are listed, as Hudi does.
    """
    try:
        return int(storage.read(f"{HISTORY_PATH}/{_VERSION_FILE}"))
    except StorageNotFoundError:
        return max(manifest_versions(info.path.rpartition("/")[2] for info in storage.list(HISTORY_PATH)), default=0)


def manifest_versions(names: Iterable[str]) -> list[int]:
    """The numbers of the manifests among some file names."""
    return [int(match.group(1)) for name in names if (match := _MANIFEST.match(name)) is not None]


def read_manifest(storage: Storage, version: int) -> tuple[HistoryFile, ...]:
    """The files that a manifest names. Raises ValueError or KeyError for a damaged one, StorageError."""
    entries = json.loads(storage.read(f"{HISTORY_PATH}/manifest_{version}"))["files"]
    return tuple(HistoryFile.named(entry["fileName"], int(entry["fileLen"])) for entry in entries)


def _unreadable(entry: HistoryFile, error: Exception) -> CorruptDataError:
    return CorruptDataError(
        f"a file of the timeline's history cannot be read: {error}", do_next="restore it from a copy", path=entry.path
    )
