"""Every version of one row, where it comes from, and why it won or lost.

What the lake stores is read first: the files of the row's file group and the commits. Superseded events are stored
nowhere in the lake, nor are a row's GTID and Kafka offset. They are looked up in Kafka, in the offset ranges of the
commits that wrote to the file group, as far as Kafka still has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.decode.changes import SourceTable
from pipeline.decode.formats.trace import Trace
from pipeline.decode.order import OrderPlace
from pipeline.hudi.definition.schema import RECORD_KEY_FIELD
from pipeline.hudi.read.versions import GroupFiles, group_files, read_versions
from pipeline.hudi.table.table import HudiTable
from pipeline.row_history.changes import ChangeReader, RowChange
from pipeline.row_history.commits import Commit, CommitKind, CommitLog
from pipeline.row_history.keys import RowKey
from pipeline.row_history.records import Records, reach
from pipeline.row_history.verdicts import Fate, Verdict, Version, verdicts, versions_of
from pipeline.schema_changes.rules.table_ddl import Entry
from pipeline.source.missing import describe
from pipeline.source.offsets import OffsetRange


class LineKind(StrEnum):
    """What a line is about."""

    VERSION = "version"
    SUPERSEDED = "superseded"
    NO_CHANGE = "no change"
    DDL = "ddl"
    CLEANED = "cleaned"
    QUARANTINED = "quarantined"


@dataclass(frozen=True)
class Record:
    """A Kafka record of the row: its place, transaction and time (ms since the epoch, 0 if unknown)."""

    topic: str
    partition: int
    offset: int
    trace: Trace
    source_ms: int


@dataclass(frozen=True)
class Line:
    """One line of a row's history.

    Args:
        kind: what it is about.
        found_in: where it was found: ``lake``, ``Kafka``, ``commits`` or ``quarantine``.
        why: the verdict in words.
        op: ``upsert`` or ``delete``.
        order: the ordering value; None where there is none.
        commit: the commit; None if it is not known.
        fate: of a version.
        values: the row; None for a delete.
        changed: the columns that differ from the version before.
        files: the files that hold the version.
        record: its Kafka record; None if it was not looked up or not found.
        statement: the DDL statement, or the reason of the quarantine.
    """

    kind: LineKind
    found_in: str
    why: str
    op: str = ""
    order: int | None = None
    commit: Commit | None = None
    fate: Fate | None = None
    values: Mapping[str, Any] | None = None
    changed: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    record: Record | None = None
    statement: str = ""


@dataclass
class RowHistory:
    """The history of one record key at one place.

    Args:
        key, path: record key and partition path.
        file_group: the file id.
        lines: by ordering value, then by commit.
        notes: what is not known, and why.
    """

    key: str
    path: str
    file_group: str
    lines: list[Line] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def fate(self) -> Fate | None:
        """Whether the row is live or deleted now; None if the lake stores no version of it."""
        fates = [line.fate for line in self.lines if line.fate in (Fate.LIVE, Fate.DELETED)]
        return fates[0] if fates else None


@dataclass(frozen=True)
class KafkaLook:
    """How Kafka is asked. ``most``: the largest number of records that are read."""

    records: Records
    reader: ChangeReader
    source: SourceTable
    most: int


def row_histories(
    table: HudiTable,
    key: RowKey,
    log: CommitLog,
    partitions: Sequence[str] | None = None,
    kafka: KafkaLook | None = None,
) -> list[RowHistory]:
    """The histories of a row: one for each partition that stores a version of it, or had files that are cleaned.

    Args:
        table: open; only the file groups of the key's bucket are read, all of them for a table without a key.
        key: the row.
        log: the table's commits.
        partitions: the partition paths to look into; None for all.
        kafka: how to look up events in Kafka; None to leave that out.

    Raises CorruptDataError, UnsupportedError, StorageError, and the errors of Kafka.
    """
    found: list[RowHistory] = []
    for files in group_files(table, key.buckets(table), partitions):
        rows = _rows(table, files, key)
        names = pc.unique(rows.column(RECORD_KEY_FIELD)).to_pylist()
        if not names and key.lookup is not None and not partitions and files.partition_path:
            continue  # another partition holds the row
        for name in names or ([key.lookup.keys[0].as_py()] if key.lookup is not None else []):
            mine = rows.filter(pc.equal(rows.column(RECORD_KEY_FIELD), name)).to_pylist()
            found.append(_history(name, mine, files, log))
    if kafka is not None and found:
        _look_into_kafka(found, log, kafka)
    return found


def _rows(table: HudiTable, files: GroupFiles, key: RowKey) -> pa.Table:
    columns = [name for name in table.schema.names if name != table.config.ordering_field]
    if key.lookup is not None:
        return read_versions(table, files, key.lookup.keys, columns)
    rows = read_versions(table, files, None, columns)
    mask = pa.array([True] * len(rows))
    for name, value in key.values.items():
        same = pc.equal(rows.column(name), pa.scalar(value, rows.schema.field(name).type))
        mask = pc.and_(mask, pc.fill_null(same, False))
    keys = pc.unique(rows.filter(mask).column(RECORD_KEY_FIELD))
    return rows.filter(pc.is_in(rows.column(RECORD_KEY_FIELD), keys))


def _history(name: str, rows: Iterable[Mapping[str, Any]], files: GroupFiles, log: CommitLog) -> RowHistory:
    completed = {instant: commit.completed for instant, commit in log.commits.items()}
    versions = versions_of(rows, files.partition_path, files.newest_paths, completed)
    history = RowHistory(name, files.partition_path, files.file_id)
    told = zip(versions, verdicts(versions), strict=True)
    history.lines = _with_changes([_version_line(version, verdict, log) for version, verdict in told])
    history.lines += _ddl_lines(versions, log)
    history.lines += _cleaned_lines(files, log, history)
    history.lines.sort(key=_rank)
    return history


def _rank(line: Line) -> tuple[int, str, int]:
    offset = line.record.offset if line.record is not None else 0
    return line.order if line.order is not None else -1, line.commit.completed if line.commit else "", offset


def _version_line(version: Version, verdict: Verdict, log: CommitLog) -> Line:
    commit = log.commits.get(version.instant)
    why = verdict.why
    if commit is not None and commit.kind is CommitKind.REVERT:
        revert = log.revert_of(version.instant)
        why = f"{why}; written by binlake revert ({revert.what if revert is not None else 'unknown'})"
    elif commit is not None and commit.kind is CommitKind.DDL:
        why = f"{why}; restated by DDL at its own ordering value"
    return Line(
        LineKind.VERSION,
        "lake",
        why,
        "delete" if version.values is None else "upsert",
        version.order,
        commit,
        verdict.fate,
        version.values,
        files=version.files,
    )


def _with_changes(lines: Sequence[Line]) -> list[Line]:
    """The lines with the columns that differ from the version before, in the source's order."""
    found, before = [], None
    for line in sorted(lines, key=_rank):
        values = line.values
        if values is not None and before is not None:
            found.append(replace(line, changed=tuple(n for n, v in values.items() if before.get(n) != v)))
        else:
            found.append(line)
        before = values
    return found


def _ddl_lines(versions: Sequence[Version], log: CommitLog) -> list[Line]:
    written = {version.instant for version in versions}
    return [_ddl_line(entry, instant, log, touched=instant in written) for entry, instant in log.ddl]


def _ddl_line(entry: Entry, instant: str, log: CommitLog, *, touched: bool) -> Line:
    told = "; ".join(map(str, entry.rulings))
    effect = "it restated this row" if touched else "it wrote no version of this row"
    why = f"{told}; {effect}"
    return Line(LineKind.DDL, "commits", why, "ddl", entry.order, log.commits.get(instant), statement=entry.statement)


def _cleaned_lines(files: GroupFiles, log: CommitLog, history: RowHistory) -> list[Line]:
    """Commits whose files of this group are gone: versions in them are known only as far as other files hold them."""
    held = set(files.paths)
    lines = []
    for commit in log.commits.values():
        gone = tuple(path for path in commit.files.get(files.file_id, ()) if path not in held and _of(path, files))
        known = any(line.commit is commit for line in history.lines if line.kind is LineKind.VERSION)
        if gone and not known and commit.kind is not CommitKind.COMPACTION:
            lines.append(Line(LineKind.CLEANED, "commits", "its file was cleaned", commit=commit, files=gone))
    if lines:
        history.notes.append(
            f"{len(lines)} commits wrote to this file group in files that were cleaned since: "
            "whether they changed this row is not stored any more"
        )
    return lines


def _of(path: str, files: GroupFiles) -> bool:
    return path.rpartition("/")[0] == files.partition_path


# -- events in Kafka --------------------------------------------------------------------------------------------------


def _look_into_kafka(histories: Sequence[RowHistory], log: CommitLog, kafka: KafkaLook) -> None:
    """Add the Kafka records of the rows to the histories."""
    groups = {history.file_group for history in histories}
    commits = [c for c in log.commits.values() if c.ranges and groups & c.files.keys()]
    wanted: list[OffsetRange] = [one for commit in commits for one in commit.ranges]
    reached = reach(kafka.records, wanted, kafka.most)
    keys = pa.array(sorted({history.key for history in histories}), pa.string())
    found: dict[tuple[str, str], list[RowChange]] = {}
    for chunk in kafka.records.read(reached.there):
        for change in kafka.reader.read(chunk, keys={kafka.source: keys}):
            if isinstance(change, RowChange) and change.source == kafka.source:
                found.setdefault((change.path, change.key), []).append(change)
    for history in histories:
        _add_events(history, found.get((history.path, history.key), ()), log)
        for ranges, why in ((reached.gone, "Kafka no longer has"), (reached.left, "--kafka-records left out")):
            if ranges:
                history.notes.append(f"{why} {ranges.records} of the offsets of these commits: {describe(ranges)}")


def _add_events(history: RowHistory, changes: Sequence[RowChange], log: CommitLog) -> None:
    """Give each version its record; the other records become lines of their own."""
    by_commit: dict[str, list[RowChange]] = {}
    for change in sorted(changes, key=lambda change: change.rank):
        commit = log.covering(change.topic, change.partition, change.offset)
        by_commit.setdefault(commit.instant if commit is not None else "", []).append(change)
    for instant, mine in by_commit.items():
        at, newest = _line_of(history, instant), mine[-1]
        wrote = at is not None and history.lines[at].order == newest.order
        if at is not None and wrote:
            history.lines[at] = replace(history.lines[at], record=_record(newest))
        for change in mine[:-1] if wrote else mine:
            history.lines.append(_event_line(change, newest, log.commits.get(instant), history))
    history.lines.sort(key=_rank)


def _line_of(history: RowHistory, instant: str) -> int | None:
    for at, line in enumerate(history.lines):
        if line.kind is LineKind.VERSION and line.commit is not None and line.commit.instant == instant:
            return at
    return None


def _event_line(change: RowChange, newest: RowChange, commit: Commit | None, history: RowHistory) -> Line:
    if change is not newest:
        place = f"{newest.topic}/{newest.partition}:{newest.offset}"
        if change.order == newest.order:
            rule = "of equal ordering values the row's number and then the offset decide"
        else:
            rule = "higher ordering value"
        kind, why = LineKind.SUPERSEDED, f"superseded in its batch by {place}: {rule}"
    elif commit is not None and commit.files.get(history.file_group) and _is_cleaned(history, commit):
        kind, why = LineKind.SUPERSEDED, "the newest of its batch; the file of its commit was cleaned"
    else:
        kind = LineKind.NO_CHANGE
        why = "the commit stores no version of it: it was applied before, or a TRUNCATE or DROP TABLE removed it"
    op = "delete" if change.after is None else "upsert"
    return Line(kind, "Kafka", why, op, change.order, commit, values=change.after, record=_record(change))


def _is_cleaned(history: RowHistory, commit: Commit) -> bool:
    return any(line.kind is LineKind.CLEANED and line.commit is commit for line in history.lines)


def _record(change: RowChange) -> Record:
    return Record(change.topic, change.partition, change.offset, change.trace, change.source_ms)


def place_text(order: int | None) -> str:
    """An ordering value as people read it; - for None."""
    return "-" if order is None else str(OrderPlace.of(order))
