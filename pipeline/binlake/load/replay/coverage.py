"""Finds the files of a dump that are in the tables already. The commit records of replays are the only source.

A replay takes files in portions. Every commit of a portion names the portion's files and all tables that the portion
has rows for, so a portion is done when each of these tables has its commit. A portion that a dead run left incomplete
is repeated with the same files, for the tables that lack it. A table that is restored loses its commits together with
their rows, and its portions are replayed again.

A commit names the files of its own portion only, but the hours of all portions, as ranges, so that its size is bounded.
The hours show whether the archived commits, which are many, must be read for the requested hours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from binlake.decode.changes import SourceTable
from binlake.position.record_reader import RecordReader
from binlake.position.recorded import DumpHours, RecordedPortion
from binlake.settings import Settings
from binlake.source.dump_layout import DumpFile, Window
from binlake.source.dump_versions import earlier_identities
from binlake.tables.catalog import table_paths
from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.storage import Storage
from hudilake.table.table import HudiTable

_MOST_RANGES = 200
#: The most files of a portion: a commit names all files of its portion.
MOST_FILES = 500
_PARALLEL_READS = 8

#: Ranges of hours, as (first, end); the end is exclusive.
Hours = list[tuple[int, int]]


@dataclass(frozen=True)
class DumpPortion:
    """Files that are replayed together. ``done``: the tables that have them already, if the portion is repeated."""

    files: tuple[DumpFile, ...]
    done: frozenset[SourceTable] = frozenset()

    @property
    def name(self) -> str:
        """The portion's name; the same files give the same name."""
        said = json.dumps([file.identity for file in self.files])
        return hashlib.blake2b(said.encode(), digest_size=8).hexdigest()

    def span(self, step: int) -> tuple[int, int]:
        """The hours from the first to the last file; the end is exclusive. ``step``: the hours of one directory."""
        return self.files[0].hour, self.files[-1].hour + step

    def recorded(self, uri: str, tables: Iterable[SourceTable], settled: Iterable[SourceTable] = ()) -> RecordedPortion:
        """The portion as commits record it.

        Args:
            uri: the dump's root.
            tables: all tables that the portion has rows for.
            settled: tables that get no commit of their own.
        """
        return RecordedPortion(uri, self.name, _sorted(tables), self.files, _sorted(settled))


@dataclass
class _FoundPortion:
    """A portion as found in the commits."""

    files: dict[str, DumpFile]
    wanted: set[SourceTable]
    found: set[SourceTable] = field(default_factory=set)

    @property
    def done(self) -> bool:
        return self.wanted <= self.found


@dataclass
class DumpCoverage:
    """The replayed part of one dump.

    Args:
        identities: the identities of the files of portions that are done, as ``DumpFile.identity``.
        hours: the hours of these files.
        open: the portions that are not done.
    """

    identities: set[tuple[str, int, int]] = field(default_factory=set)
    hours: set[int] = field(default_factory=set)
    open: list[DumpPortion] = field(default_factory=list)

    @property
    def paths(self) -> set[str]:
        """The paths of the files."""
        return {path for path, _, _ in self.identities}

    def with_files(self, files: Iterable[DumpFile]) -> DumpCoverage:
        """This coverage with more files."""
        more = list(files)
        return DumpCoverage(
            self.identities | {file.identity for file in more}, self.hours | {file.hour for file in more}, self.open
        )

    def changed(self, files: Iterable[DumpFile]) -> list[DumpFile]:
        """The files whose path was replayed, but never with the present content."""
        paths = self.paths
        return [file for file in files if file.path in paths and file.identity not in self.identities]

    def with_erased(self, storage: Storage, files: Iterable[DumpFile]) -> DumpCoverage:
        """This coverage with the present versions of files that were replayed before an erasure wrote them.

        Args:
            storage: the dump's root.
            files: as they are now.

        Raises CorruptDataError, StorageError.
        """
        return self.with_files(
            file for file in self.changed(files) if not self.identities.isdisjoint(earlier_identities(storage, file))
        )

    @classmethod
    def load(cls, settings: Settings, root: Storage, uri: str, stream: str, window: Window) -> DumpCoverage:
        """Read the coverage from the commits of all tables.

        Args:
            settings: of the lake.
            root: the lake's root.
            uri: the dump's root.
            stream: the stream name in the commits of replays.
            window: the requested hours.

        Raises CorruptDataError, StorageError.
        """
        paths = table_paths(root, settings.tables.path.count("/") + 1)
        if HudiTable.exists(root.sub(settings.quarantine_path)):
            paths.append(settings.quarantine_path)
        seen: dict[str, _FoundPortion] = {}
        with ThreadPoolExecutor(_PARALLEL_READS) as pool:
            for commits in pool.map(lambda path: list(_recorded(root.sub(path), uri, stream, window)), paths):
                for portion, source in commits:
                    _note(seen, portion, source)
        coverage = cls()
        for one in seen.values():
            if one.done:
                coverage.identities |= {file.identity for file in one.files.values()}
                coverage.hours |= {file.hour for file in one.files.values()}
            elif any(file.hour in window for file in one.files.values()):
                coverage.open.append(DumpPortion(tuple(sorted(one.files.values())), frozenset(one.found)))
        return coverage


def _recorded(
    storage: Storage, uri: str, stream: str, window: Window
) -> Iterator[tuple[RecordedPortion, SourceTable | None]]:
    """The portions of this dump in a table's commits, each with the source table of the commit."""
    table = HudiTable.open(storage)
    for instant in table.timeline.completed():
        yield from _portion(table.timeline.commit_metadata(instant), uri, stream)
    history = table.timeline.history()
    archived = (RecordReader.newest_of(history).hours or {}).get(uri, [])
    if any(first < (window.end or end) and (window.first or 0) < end for first, end in archived):
        for old in history.commits():
            body = CommitMetadata.from_bytes(old.metadata, f"history of {old.requested_time}")
            yield from _portion(body, uri, stream)


def _portion(body: CommitMetadata, uri: str, stream: str) -> Iterator[tuple[RecordedPortion, SourceTable | None]]:
    record = RecordReader.of_commit(body.extra)
    portion = record.portion if record.stream == stream else None
    if portion is not None and portion.root == uri:
        yield portion, record.portion_table


def _note(seen: dict[str, _FoundPortion], portion: RecordedPortion, of_table: SourceTable | None) -> None:
    files = {file.path: file for file in portion.files}
    one = seen.setdefault(portion.name, _FoundPortion(files, set(portion.tables)))
    one.wanted |= set(portion.tables)
    one.found |= set(portion.settled)
    if of_table is not None:
        one.found.add(of_table)


def _sorted(tables: Iterable[SourceTable]) -> tuple[SourceTable, ...]:
    return tuple(sorted(tables, key=lambda table: (table.database, table.table)))


def with_hours(hours: DumpHours, uri: str, span: tuple[int, int]) -> DumpHours:
    """The hours of dumps, extended by ``span`` of the dump ``uri``.

    If there are too many ranges, the closest ones are joined. The only effect is that archived commits are read for
    hours in between that were not replayed.
    """
    return {**hours, uri: fewer(united([*hours.get(uri, []), span]), _MOST_RANGES)}


def united(ranges: Iterable[tuple[int, int]]) -> Hours:
    """Hour ranges in order; ranges that touch are joined."""
    hours: Hours = []
    for first, end in sorted(ranges):
        if hours and first <= hours[-1][1]:
            hours[-1] = hours[-1][0], max(end, hours[-1][1])
        else:
            hours.append((first, end))
    return hours


def fewer(ranges: Hours, most: int) -> Hours:
    """At most ``most`` ranges: the ranges with the smallest gaps are joined."""
    gaps = sorted(range(1, len(ranges)), key=lambda index: ranges[index][0] - ranges[index - 1][1])
    filled = set(gaps[: max(0, len(ranges) - most)])
    hours: Hours = []
    for index, (first, end) in enumerate(ranges):
        if index in filled:
            hours[-1] = hours[-1][0], end
        else:
            hours.append((first, end))
    return hours


def portions(files: Sequence[DumpFile], most_bytes: int, bytes_of: Mapping[str, int]) -> Iterator[DumpPortion]:
    """Files in order, cut into portions of about ``most_bytes`` bytes, with at least one file each.

    ``bytes_of``: the bytes of a file's records by its path.
    """
    held: list[DumpFile] = []
    size = 0
    for file in files:
        if held and (size + bytes_of[file.path] > most_bytes or len(held) >= MOST_FILES):
            yield DumpPortion(tuple(held))
            held, size = [], 0
        held.append(file)
        size += bytes_of[file.path]
    if held:
        yield DumpPortion(tuple(held))
