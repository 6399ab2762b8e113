"""Adds the events of Kafka to the histories of rows: GTID and offset of each version, and what was superseded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from binlake.decode.changes import SourceTable
from binlake.proof.history.changes import ChangeReader
from binlake.proof.history.commits import Commit, CommitKind, CommitLog
from binlake.proof.history.history import Line, LineKind, Record, RowHistory, operation, rank
from binlake.proof.history.records import Records, reach
from binlake.proof.history.row_change import KEYLESS, NoRow, RowChange, in_order
from binlake.source.offsets import OffsetRange, describe

#: Commits of records that a commit of the stream has read before.
_REPLAYS = (CommitKind.QUARANTINE, CommitKind.DUMP)


@dataclass(frozen=True)
class KafkaLook:
    """How Kafka is asked. ``most``: the largest number of records that are read."""

    records: Records
    reader: ChangeReader
    source: SourceTable
    most: int


def look_into_kafka(histories: Sequence[RowHistory], log: CommitLog, kafka: KafkaLook) -> None:
    """Add the Kafka records of the rows to the histories."""
    groups = {history.file_group for history in histories}
    commits = [c for c in log.commits.values() if c.ranges and groups & c.files.keys()]
    wanted: list[OffsetRange] = [one for commit in commits for one in commit.ranges]
    reached = reach(kafka.records, wanted, kafka.most)
    keys = pa.array(sorted({history.key for history in histories}), pa.string())
    changes_by_row: dict[tuple[str, str], list[RowChange]] = {}
    keyless = False
    for chunk in kafka.records.read(reached.there):
        for change in kafka.reader.read(chunk, keys={kafka.source: keys}):
            if isinstance(change, RowChange):
                changes_by_row.setdefault((change.path, change.key), []).append(change)
            keyless |= isinstance(change, NoRow) and change.why == KEYLESS
    for history in histories:
        _add_events(history, changes_by_row.get((history.path, history.key), ()), log)
        if keyless:
            history.notes.append("which events made this row: the table has no key, so events name no row")
        for ranges, why in ((reached.gone, "Kafka no longer has"), (reached.left, "--kafka-records left out")):
            if ranges:
                history.notes.append(f"{why} {ranges.records} of the offsets of these commits: {describe(ranges)}")


def _add_events(history: RowHistory, changes: Sequence[RowChange], log: CommitLog) -> None:
    """Give each version its record; the other records become lines of their own."""
    by_commit: dict[str, list[RowChange]] = {}
    for change in in_order(changes):
        commit = log.covering(change.topic, change.partition, change.offset)
        by_commit.setdefault(commit.instant if commit is not None else "", []).append(change)
    for instant, mine in by_commit.items():
        newest = mine[-1]
        line_index = _line_of(history, instant, newest)
        if line_index is not None:
            history.lines[line_index] = replace(history.lines[line_index], record=_record(newest))
        for change in mine[:-1] if line_index is not None else mine:
            history.lines.append(_event_line(change, newest, log.commits.get(instant), history))
    history.lines.sort(key=rank)


def _line_of(history: RowHistory, instant: str, newest: RowChange) -> int | None:
    """The version that a commit made of the newest of its events; else the one that a later replay made of it."""
    ops = {operation(newest.after), "delete"} if newest.removed else {operation(newest.after)}
    candidates = [
        index
        for index, line in enumerate(history.lines)
        if line.kind is LineKind.VERSION and line.order == newest.order and line.op in ops and line.commit is not None
    ]
    mine = [index for index in candidates if _instant(history.lines[index]) == instant]
    later = [
        index for index in candidates if _kind(history.lines[index]) in _REPLAYS and history.lines[index].record is None
    ]
    return next(iter([*mine, *later]), None)


def _instant(line: Line) -> str | None:
    return line.commit.instant if line.commit is not None else None


def _kind(line: Line) -> CommitKind | None:
    return line.commit.kind if line.commit is not None else None


def _event_line(change: RowChange, newest: RowChange, commit: Commit | None, history: RowHistory) -> Line:
    if change is not newest:
        place = f"{newest.topic}/{newest.partition}:{newest.offset}"
        if change.order == newest.order:
            rule = "of equal ordering values the later offset decides, and the later row"
        else:
            rule = "higher ordering value"
        kind, why = LineKind.SUPERSEDED, f"superseded in its batch by {place}: {rule}"
    elif commit is not None and commit.files.get(history.file_group) and _is_cleaned(history, commit):
        kind, why = LineKind.SUPERSEDED, "the newest of its batch; the file of its commit was cleaned"
    else:
        kind = LineKind.NO_CHANGE
        why = "the commit stores no version of it: it was applied before, or a TRUNCATE or DROP TABLE removed it"
    if change.removed:
        why = f"{why}; a statement about its partition removed the row later"
    return Line(
        kind, "Kafka", why, operation(change.after), change.order, commit, values=change.after, record=_record(change)
    )


def _is_cleaned(history: RowHistory, commit: Commit) -> bool:
    return any(line.kind is LineKind.CLEANED and line.commit is commit for line in history.lines)


def _record(change: RowChange) -> Record:
    return Record(change.topic, change.partition, change.offset, change.trace, change.source_ms)
