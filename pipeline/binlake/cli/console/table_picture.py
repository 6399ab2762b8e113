"""One table as it lies in the lake, read when a person asks for it: timeline, file groups, columns, DDL, properties.

It costs the reads of one table, bounded in number: the newest commits, the newest files, the first columns. A picture
is kept while the timeline stays as it is; of a table that moves all the time it is made anew within a share of one
processor's time, and says how old it is.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from binlake.cli.console.costs import OpenTables, ProcessorShare
from binlake.cli.console.looked import TimelineMark
from binlake.position.record_reader import RecordReader
from binlake.proof.history.commits import CommitKind, kind_of_commit
from binlake.schema.rules.entries import DdlEntry
from binlake.source.offsets import Ranges, describe
from binlake.stream.monitoring.writers import Writer, heartbeats, lock_holder
from hudilake.clock import now_ms, parse_instant
from hudilake.errors import LakeError
from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.files.view import FileSlice
from hudilake.format.timeline.instant import (
    CLUSTERING,
    COMMIT,
    COMPACTION,
    COMPLETED_ACTIONS,
    DELTA_COMMIT,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    WRITE_ACTIONS,
    Instant,
)
from hudilake.read.index import INDEX_FAILURES, table_index
from hudilake.storage import Storage
from hudilake.table.table import HudiTable

#: Instants that are drawn, commits whose bodies are read, files and columns whose ranges are.
INSTANTS, COMMITS, FILES, COLUMNS = 120, 40, 200, 60
#: File groups that are drawn, the largest.
GROUPS = 600
#: Pictures that are kept, and the share of one processor that making one again and again may take.
PICTURES, PICTURE_SHARE = 4, 0.02


@dataclass(frozen=True, slots=True)
class TimelineMove:
    """An instant of the timeline.

    Args:
        instant: its requested time.
        action: what it is, as its file in the timeline says.
        lane: the lane of the picture that it is in: "commits" or "compactions", for example.
        state: ``completed``, ``inflight`` or ``requested``.
        completed: its completion time; "" if it is pending.
        took_ms: from the request to the completion; None if it is pending.
        rows, files, stored: what a commit wrote: upserts and deletes, files, bytes; None if its body was not read.
        by: what made a commit whose body was read.
        source: the offsets of a commit of the stream, for people.
    """

    instant: str
    action: str
    lane: str
    state: str
    completed: str
    took_ms: int | None
    rows: int | None = None
    files: int | None = None
    stored: int | None = None
    by: str = ""
    source: str = ""

    @property
    def words(self) -> str:
        """What it is, in one or two words: what made it, where that is known."""
        return self.by or self.action


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """A column: its type, and what the metadata table knows of the newest files.

    ``low``, ``high``: bounds of its values, for people; "" if none is known. ``nulls``: None if that is not known.
    """

    name: str
    type: str
    role: str
    low: str = ""
    high: str = ""
    nulls: int | None = None


@dataclass(frozen=True)
class TablePicture:
    """A table.

    Args:
        uri: of its root.
        moves: the newest instants, oldest first.
        completed, pending: how many instants there are.
        slices: the largest file slices, largest first.
        groups: how many file groups there are.
        columns: the first ones; ``ranges``: what their ranges are of, or why they have none.
        ddl: the statements that were judged for it.
        properties: of ``hoodie.properties``.
        lock: the holder of its lock.
        writers: the writers with a heartbeat.
        moved_ms: how old the picture is, of a table that has moved since; None if it is of now.
    """

    uri: str
    moves: Sequence[TimelineMove]
    completed: int
    pending: int
    slices: Sequence[FileSlice]
    groups: int
    columns: Sequence[ColumnFacts]
    ranges: str
    ddl: Sequence[DdlEntry]
    properties: Mapping[str, str]
    lock: Writer | None
    writers: Sequence[Writer]
    moved_ms: int | None = None


@dataclass(frozen=True)
class _KeptPicture:
    """A picture, the mark of its timeline, when it was made, and what making it took."""

    picture: TablePicture
    mark: TimelineMark
    made_ms: int
    share: ProcessorShare


class TablePictures:
    """The pictures of the tables whose pages were opened last. For any thread; pictures are made one at a time.

    Args:
        root: of the lake.
        stream: the name of its stream.
        heartbeat_timeout_s: after so many seconds a writer is dead.
    """

    def __init__(self, root: Storage, stream: str, heartbeat_timeout_s: float) -> None:
        self._root, self._stream, self._timeout_s = root, stream, heartbeat_timeout_s
        self._tables = OpenTables(root, PICTURES)
        self._kept: dict[str, _KeptPicture] = {}
        self._lock = threading.Lock()

    def of(self, path: str) -> TablePicture:
        """The picture of the table at a path. Without a further commit no file is read for it. Errors as
        ``table_picture``."""
        storage = self._root.sub(path)
        with self._lock:
            mark, kept = TimelineMark.of(storage), self._kept.pop(path, None)
            if kept is None or (kept.mark != mark and not kept.share.rests):
                kept = self._made(path, mark)
            self._kept[path] = kept
            while len(self._kept) > PICTURES:
                del self._kept[next(iter(self._kept))]
        moved_ms = now_ms() - kept.made_ms if kept.mark != mark else None
        return replace(
            kept.picture,
            lock=lock_holder(storage),
            writers=heartbeats(storage, self._timeout_s),
            moved_ms=moved_ms,
        )

    def _made(self, path: str, mark: TimelineMark) -> _KeptPicture:
        share, made_ms = ProcessorShare(PICTURE_SHARE), now_ms()
        try:
            with share.spending():
                picture = table_picture(self._tables.at(path), self._stream, self._timeout_s)
        except LakeError:
            self._tables.close(path)
            raise
        return _KeptPicture(picture, mark, made_ms, share)


def table_picture(table: HudiTable, stream: str, heartbeat_timeout_s: float) -> TablePicture:
    """Look at one table. Changes nothing. Raises CorruptDataError, StorageError, UnsupportedError.

    Args:
        table: open.
        stream: the name of its stream, which tells its commits from those of others.
        heartbeat_timeout_s: after so many seconds a writer is dead.
    """
    storage = table.storage
    completed, pending = table.timeline.completed_actions(COMPLETED_ACTIONS), table.timeline.pending()
    shown = sorted([*completed, *pending])[-INSTANTS:]
    bodies = {*[one for one in shown if one.completed and one.action in WRITE_ACTIONS][-COMMITS:]}
    slices = sorted(table.file_slices(), key=lambda piece: piece.base_size + piece.log_size, reverse=True)
    columns, why = _columns(table, slices)
    return TablePicture(
        storage.uri,
        [_move(table, instant, stream, read=instant in bodies) for instant in shown],
        len(completed),
        len(pending),
        slices[:GROUPS],
        len(slices),
        columns,
        why,
        RecordReader.newest_of(table).ddl or (),
        dict(sorted(table.config.properties().items())),
        lock_holder(storage),
        heartbeats(storage, heartbeat_timeout_s),
    )


def _move(table: HudiTable, instant: Instant, stream: str, *, read: bool) -> TimelineMove:
    took = None
    if instant.completion_time is not None:
        took = parse_instant(instant.completion_time) - parse_instant(instant.requested_time)
    lane = _lane(instant.action, table.config.kind)
    own = (instant.requested_time, instant.action, lane, instant.state.value, instant.completion_time or "", took)
    if not read:
        return TimelineMove(*own)
    body = table.timeline.commit_metadata(instant)
    record = RecordReader.of_commit(body.extra)
    kind = kind_of_commit(body, record, stream)
    rows = sum(stat.num_writes + stat.num_deletes for stat in body.stats)
    stored = sum(stat.file_size for stat in body.stats)
    ranges = record.ranges if kind in (CommitKind.STREAM, CommitKind.DUMP) else Ranges()
    words = describe(ranges) if ranges else ""
    return TimelineMove(*own, rows, len(body.stats), stored, kind.value, words)


def _lane(action: str, kind: TableKind) -> str:
    """The lane of an action, which is the same before and after the action completes."""
    if action in (COMPACTION, LOG_COMPACTION, kind.compaction):
        return "compactions"
    if action in (COMMIT, DELTA_COMMIT):
        return "commits"
    return "replacements" if action in (CLUSTERING, REPLACE_COMMIT) else f"{action}s"


def _columns(table: HudiTable, slices: Sequence[FileSlice]) -> tuple[list[ColumnFacts], str]:
    schema = table.schema
    roles = dict.fromkeys(table.config.partition_fields, "partition") | dict.fromkeys(
        table.config.record_key_fields, "key"
    )
    if table.config.ordering_field:
        roles.setdefault(table.config.ordering_field, "order")
    names = schema.names[:COLUMNS]
    ranges, why = _ranges(table, names, slices)
    return [_column(schema.field(name), roles.get(name, ""), ranges.get(name, ())) for name in names], why


def _ranges(
    table: HudiTable, names: Sequence[str], slices: Sequence[FileSlice]
) -> tuple[dict[str, list[ColumnRange]], str]:
    """The ranges of the files by column, and what they are of, or why there are none."""
    index = table_index(table)
    if index is None or not index.has(MetadataPartition.COLUMN_STATS):
        return {}, "the table keeps no ranges of its columns"
    base = [(s.partition_path, str(s.base_file.name)) for s in slices if s.base_file is not None]
    logs = [(s.partition_path, str(file.name)) for s in slices for file in s.log_files]
    files = [*base, *logs][:FILES]
    if not files:
        return {}, "the table has no file yet"
    try:
        by_file = index.lookups(MetadataPartition.COLUMN_STATS).column_ranges(names, files)
    except INDEX_FAILURES as error:
        words = error.what if isinstance(error, LakeError) else type(error).__name__
        return {}, f"the metadata table cannot be read: {words}"
    ranges: dict[str, list[ColumnRange]] = {}
    for one in by_file.values():
        for name, bounds in one.items():
            ranges.setdefault(name, []).append(bounds)
    more = f" of {len(base) + len(logs)}" if len(base) + len(logs) > len(by_file) else ""
    return ranges, f"bounds of the values in {len(by_file)}{more} files, former values of rows among them"


def _column(field: pa.Field, role: str, ranges: Iterable[ColumnRange]) -> ColumnFacts:
    known = [one for one in ranges if one.min is not None and one.max is not None]
    nulls = sum(one.null_count for one in ranges)
    if not known:
        return ColumnFacts(field.name, str(field.type), role)
    bounds: list[Any] = [min(one.min for one in known), max(one.max for one in known)]  # type: ignore[type-var]
    low, high = (_value(bound, field.type) for bound in bounds)
    return ColumnFacts(field.name, str(field.type), role, low, high, nulls)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _value(value: Any, kind: pa.DataType) -> str:  # noqa: ANN401 - a bound of any type
    """A bound for people: the index has days, microseconds and unscaled decimals as whole numbers."""
    try:
        if pa.types.is_date(kind):
            return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
        if pa.types.is_timestamp(kind):
            unit = 1000 if kind.unit == "ms" else 1
            return (_EPOCH + timedelta(microseconds=value * unit)).replace(tzinfo=None).isoformat(" ")
    except OverflowError:
        return str(value)
    if pa.types.is_decimal(kind):
        return f"{Decimal(value).scaleb(-kind.scale):f}"
    return value.hex() if isinstance(value, bytes) else str(value)
