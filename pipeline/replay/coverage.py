"""Which files of a dump are in the tables already: the commits of replays say it, and nothing else is asked.

A replay takes files in portions. Every commit of a portion names its files and all tables that the portion has rows
for, so a portion is done once each of these tables has its commit. One that a dead run left in between is repeated with
the same files, for the tables that lack it. A table that is restored forgets its commits together with their rows, and
its portions are taken again.

A commit names the files of its own portion alone, and the hours of all: as ranges, so that it does not grow with time.
They tell whether the archived commits, which are many, have to be read for the hours that are asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from pipeline.decode.changes import SourceTable
from pipeline.hudi.table.table import HudiTable
from pipeline.hudi.timeline.commit_metadata import CommitMetadata
from pipeline.lake.catalog import table_paths
from pipeline.lake.lake_table import STREAM
from pipeline.settings import Settings
from pipeline.source.dump_layout import DumpFile, Window
from pipeline.storage import Storage

#: Keys of extraMetadata: the portion of a commit; and all hours so far, as ``{root: [[first, end], ...]}``.
PORTION, HOURS = "binlake.dump", "binlake.dump_hours"
#: The table whose rows of the portion a commit holds; not there where it holds none.
OF_TABLE = "binlake.dump_table"
_MOST_RANGES = 200
#: A commit names the files of its portion, so they are bounded.
MOST_FILES = 500
_PARALLEL_READS = 8

#: Hours from the first up to but not including the second.
Ranges = list[tuple[int, int]]


@dataclass(frozen=True)
class Portion:
    """Files that are replayed together. ``done``: the tables that have them already, of a portion that is repeated."""

    files: tuple[DumpFile, ...]
    done: frozenset[SourceTable] = frozenset()

    @property
    def name(self) -> str:
        """The same for the same files."""
        said = json.dumps([file.identity for file in self.files])
        return hashlib.blake2b(said.encode(), digest_size=8).hexdigest()

    def span(self, step: int) -> tuple[int, int]:
        """The hours from its first to its last file, the end not included."""
        return self.files[0].hour, self.files[-1].hour + step

    def described(self, uri: str, tables: Iterable[SourceTable], settled: Iterable[SourceTable] = ()) -> str:
        """What a commit says of it.

        Args:
            uri: the dump's root.
            tables: all that it has rows for.
            settled: tables that get no commit of their own.
        """
        said: dict[str, object] = {
            "from": uri,
            "portion": self.name,
            "tables": sorted([t.database, t.table] for t in tables),
            "files": [[file.hour, *file.identity] for file in self.files],
        }
        if of_none := sorted([t.database, t.table] for t in settled):
            said["settled"] = of_none
        return json.dumps(said, separators=(",", ":"), ensure_ascii=False)


@dataclass
class _Seen:
    """A portion as the commits tell of it."""

    files: dict[str, DumpFile]
    wanted: set[SourceTable]
    found: set[SourceTable] = field(default_factory=set)

    @property
    def done(self) -> bool:
        return self.wanted <= self.found


@dataclass
class Coverage:
    """What has been replayed of one dump.

    Args:
        identities: of the files of portions that are done, as ``DumpFile.identity``.
        hours: of these files.
        open: portions that are not done.
    """

    identities: set[tuple[str, int, int]] = field(default_factory=set)
    hours: set[int] = field(default_factory=set)
    open: list[Portion] = field(default_factory=list)

    @property
    def paths(self) -> set[str]:
        """The paths of the files."""
        return {path for path, _, _ in self.identities}

    def with_files(self, files: Iterable[DumpFile]) -> Coverage:
        """The same with more files."""
        more = list(files)
        return Coverage(
            self.identities | {file.identity for file in more}, self.hours | {file.hour for file in more}, self.open
        )

    def changed(self, files: Iterable[DumpFile]) -> list[DumpFile]:
        """Those that were replayed under the same path, and never as they are now."""
        paths = self.paths
        return [file for file in files if file.path in paths and file.identity not in self.identities]

    @classmethod
    def load(cls, settings: Settings, root: Storage, uri: str, stream: str, window: Window) -> Coverage:
        """Ask the commits of all tables.

        Args:
            settings: of the lake.
            root: the lake's.
            uri: the dump's root.
            stream: the name that replays have in their commits.
            window: the hours that matter.

        Raises CorruptDataError, StorageError.
        """
        paths = table_paths(root, settings.tables.path.count("/") + 1)
        if HudiTable.exists(root.sub(settings.quarantine_path)):
            paths.append(settings.quarantine_path)
        seen: dict[str, _Seen] = {}
        with ThreadPoolExecutor(_PARALLEL_READS) as pool:
            for said in pool.map(lambda path: list(_told(root.sub(path), uri, stream, window)), paths):
                for portion, source in said:
                    _note(seen, portion, source)
        coverage = cls()
        for one in seen.values():
            if one.done:
                coverage.identities |= {file.identity for file in one.files.values()}
                coverage.hours |= {file.hour for file in one.files.values()}
            elif any(file.hour in window for file in one.files.values()):
                coverage.open.append(Portion(tuple(sorted(one.files.values())), frozenset(one.found)))
        return coverage


def _told(storage: Storage, uri: str, stream: str, window: Window) -> Iterator[tuple[Mapping[str, object], object]]:
    """What a table's commits say of portions of this dump, each with the source table of the commit."""
    table = HudiTable.open(storage)
    for instant in table.timeline.completed():
        yield from _portion(table.timeline.commit_metadata(instant), uri, stream)
    history = table.timeline.history()
    archived = ranges_of(history.newest_extra(HOURS), uri)
    if any(first < (window.end or end) and (window.first or 0) < end for first, end in archived):
        for old in history.commits():
            body = CommitMetadata.from_bytes(old.metadata, f"history of {old.requested_time}")
            yield from _portion(body, uri, stream)


def _portion(body: CommitMetadata, uri: str, stream: str) -> Iterator[tuple[Mapping[str, object], object]]:
    if body.extra.get(STREAM) == stream and PORTION in body.extra:
        portion = json.loads(body.extra[PORTION])
        if portion["from"] == uri:
            yield portion, json.loads(body.extra.get(OF_TABLE) or "null")


def _note(seen: dict[str, _Seen], portion: Mapping[str, object], of_table: object) -> None:
    files = [DumpFile(*file) for file in portion["files"]]  # type: ignore[attr-defined]
    wanted = _sources(portion["tables"])
    one = seen.setdefault(str(portion["portion"]), _Seen({file.path: file for file in files}, wanted))
    one.wanted |= wanted
    one.found |= _sources(portion.get("settled", []))
    if of_table is not None:
        one.found |= _sources([of_table])


def _sources(pairs: object) -> set[SourceTable]:
    return {SourceTable(database, table) for database, table in pairs}  # type: ignore[attr-defined]


def ranges_of(said: str | None, uri: str) -> Ranges:
    """The hours of one dump that a commit's ``HOURS`` tells of."""
    return [(first, end) for first, end in json.loads(said or "{}").get(uri, [])]


def with_hours(said: str | None, uri: str, span: tuple[int, int]) -> str:
    """``HOURS`` with more hours. Of too many ranges those closest together become one: hours between them that were not
    replayed are then looked up in vain, and no more."""
    told = json.loads(said or "{}")
    told[uri] = fewer(united([*ranges_of(said, uri), span]), _MOST_RANGES)
    return json.dumps(told, separators=(",", ":"))


def united(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges in order, those that touch made one."""
    found: Ranges = []
    for first, end in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((first, end))
    return found


def fewer(ranges: Ranges, most: int) -> Ranges:
    """At most so many ranges, the smallest gaps filled."""
    gaps = sorted(range(1, len(ranges)), key=lambda at: ranges[at][0] - ranges[at - 1][1])
    filled = set(gaps[: max(0, len(ranges) - most)])
    found: Ranges = []
    for at, (first, end) in enumerate(ranges):
        if at in filled:
            found[-1] = found[-1][0], end
        else:
            found.append((first, end))
    return found


def portions(files: Sequence[DumpFile], most_bytes: int, bytes_of: Mapping[str, int]) -> Iterator[Portion]:
    """Files in order, cut into portions of about so many bytes, at least one file each.

    ``bytes_of``: the bytes of a file's records by its path.
    """
    held: list[DumpFile] = []
    size = 0
    for file in files:
        if held and (size + bytes_of[file.path] > most_bytes or len(held) >= MOST_FILES):
            yield Portion(tuple(held))
            held, size = [], 0
        held.append(file)
        size += bytes_of[file.path]
    if held:
        yield Portion(tuple(held))
