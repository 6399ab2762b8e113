"""Collects the selected changes of the source from Kafka, and refuses what cannot be undone as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from binlake.decode.changes import RawRecords, SourceTable
from binlake.decode.formats.trace import SNAPSHOT_ROW
from binlake.proof.history.changes import ChangeReader
from binlake.proof.history.commits import CommitLog
from binlake.proof.history.records import Reach, Records, reach
from binlake.proof.history.row_change import KEYLESS, Identity, NoRow, RowChange, in_order
from binlake.proof.history.selection import ChangeSelection, Chooser
from binlake.proof.history.standing import Past
from binlake.source.offsets import OffsetRange, Ranges, describe
from binlake.tables.lake_table import LakeTable
from hudilake.errors import BadInputError, ConfigError, UnsupportedError
from hudilake.wording import counted

#: How many records after the table's position are searched for the rest of a transaction.
_AHEAD = 10_000
_NAMED = 5
#: No transaction is taken to last longer: the source's times of its changes lie within it.
_LONGEST_TRANSACTION_MS = 3_600_000


@dataclass(frozen=True)
class RowChanges:
    """The selected changes of one row, as they happened, none twice.

    ``reread``: the ordering value at which an incremental snapshot has read the row last; None if none has.
    ``past``: all changes of the row, where they decide; None if they were not read.
    """

    source: SourceTable
    path: str
    key: str
    changes: tuple[RowChange, ...]
    reread: int | None = None
    past: Past | None = None


@dataclass
class Changes:
    """The selected changes.

    Args:
        rows: by row.
        transactions: the ids of their transactions.
        not_applied: records of the selection that are no changes of rows, because they are in quarantine.
    """

    rows: list[RowChanges] = field(default_factory=list)
    transactions: set[str] = field(default_factory=set)
    not_applied: list[NoRow] = field(default_factory=list)

    def of(self, source: SourceTable) -> list[RowChanges]:
        """The rows of one table."""
        return [row for row in self.rows if row.source == source]


@dataclass(frozen=True)
class OpenTable:
    """A table with its commits."""

    table: LakeTable
    log: CommitLog


def changes_in_kafka(
    records: Records,
    reader: ChangeReader,
    tables: Mapping[SourceTable, OpenTable],
    stream: str,
    selection: ChangeSelection,
    most: int,
) -> Changes:
    """The selected changes of some tables, from the records that their commits cover.

    Args:
        records: the topics.
        reader: of the same tables.
        tables: the tables.
        stream: the stream's name.
        selection: not empty.
        most: the largest number of records to read.

    Raises BadInputError if nothing is selected, records are gone or not read that may belong to the selection, a
    transaction is selected in part or not applied as a whole, or a before image is missing; UnsupportedError for
    changes of tables without a key and for TRUNCATE; the errors of ``reader`` and ``records``.
    """
    logs = [opened.log for opened in tables.values()]
    reached = reach(records, _ranges(logs, selection), most)
    collected = _ChangeCollector(Chooser(selection), reader)
    for chunk in records.read(reached.there):
        collected.take(chunk)
    _check_kinds(collected)
    _check_reached(reached, collected, logs)
    ahead = _ChangeCollector(Chooser(selection), reader)
    for chunk in records.read(_ahead(records, tables, stream)):
        ahead.take(chunk)
    _check_whole(collected, ahead, tables)
    return collected.result()


def _ranges(logs: Iterable[CommitLog], selection: ChangeSelection) -> list[OffsetRange]:
    """The offsets of commits of the selected times, and of those around them: a transaction may reach beyond."""
    since, until = selection.since_ms, selection.until_ms
    since = None if since is None else since - _LONGEST_TRANSACTION_MS
    until = None if until is None else until + _LONGEST_TRANSACTION_MS
    commits = [commit for log in logs for commit in log.commits.values()]
    return [r for commit in commits if commit.may_concern(since, until) for r in commit.ranges]


def _ahead(records: Records, tables: Mapping[SourceTable, OpenTable], stream: str) -> Ranges:
    """The records after the tables' positions, of which an unfinished batch may have applied some tables' share."""
    ranges = []
    for topic, partition, offset in {p for o in tables.values() for p in o.table.standing(stream).places()}:
        low, high = records.held(topic, partition)
        start = max(low, offset)
        if start < high:
            ranges.append(OffsetRange(topic, partition, start, min(high, start + _AHEAD)))
    return Ranges(reach(records, ranges, _AHEAD * max(1, len(ranges))).there)


@dataclass
class _ChangeCollector:
    """What was chosen so far."""

    chooser: Chooser
    reader: ChangeReader
    changes: list[RowChange] = field(default_factory=list)
    others: list[NoRow] = field(default_factory=list)
    reread: dict[tuple[SourceTable, str, str], int] = field(default_factory=dict)

    def take(self, chunk: RawRecords) -> None:
        """Add the selected changes of a chunk."""
        for change in self.reader.read(self.chooser.narrowed(chunk), self.chooser.rows):
            if isinstance(change, RowChange) and change.trace.op == SNAPSHOT_ROW:
                place = change.source, change.path, change.key
                self.reread[place] = max(change.order, self.reread.get(place, -1))
            elif isinstance(change, RowChange):
                self.changes.append(change)
            elif self._takes(change):
                self.others.append(change)

    def _takes(self, found: NoRow) -> bool:
        selection, trace = self.chooser.selection, found.trace
        if found.order is not None:
            return selection.takes(found.order, trace.source_ms, trace.names)
        return bool(selection.transactions) and not selection.transactions.isdisjoint(trace.names)

    def result(self) -> Changes:
        """The changes by row. A record that was delivered twice counts once, as it came first."""
        rows: dict[tuple[SourceTable, str, str], list[RowChange]] = {}
        first: dict[tuple[SourceTable, str, str, Identity], RowChange] = {}
        for change in self.changes:
            first.setdefault(_identity(change), change)
        for change in first.values():
            rows.setdefault((change.source, change.path, change.key), []).append(change)
        changes_by_row = Changes(not_applied=self.others)
        changes_by_row.rows = [
            RowChanges(*place, tuple(in_order(mine)), self.reread.get(place)) for place, mine in rows.items()
        ]
        changes_by_row.transactions = {c.trace.transaction or c.trace.gtid or "" for c in self.changes} - {""}
        return changes_by_row


def _check_reached(reached: Reach, collected: _ChangeCollector, logs: Sequence[CommitLog]) -> None:
    """Refuse a search that may have missed a part of the selection."""
    changes, chooser = collected.changes, collected.chooser
    if reached.left:
        raise BadInputError(
            f"{reached.left.records} records may hold more of the selection and were not read",
            do_next="raise --kafka-records, or give --since and --until",
            offsets=describe(reached.left),
        )
    gone = f"; Kafka no longer has {reached.gone.records} of the offsets" if reached.gone else ""
    if not changes:
        raise BadInputError(
            f"no change of a row is selected: {chooser.selection}{gone}",
            do_next="check the selection with binlake why; --before-images lake takes positions alone",
            offsets=describe(reached.gone) or None,
        )
    first, times = min(change.order for change in changes), [change.source_ms for change in changes]
    open_ranges = [one for one in reached.gone if not chooser.is_after(one, first)]
    if any(_may_hold(log, open_ranges, min(times), max(times)) for log in logs):
        raise BadInputError(
            "a part of the selection may be missing: Kafka no longer has these offsets, "
            "and nothing shows that they lie before it",
            do_next="--before-images lake takes before images from the lake; or name the tables by --table",
            offsets=describe(open_ranges),
        )


def _may_hold(log: CommitLog, gone: Sequence[OffsetRange], oldest_ms: int, newest_ms: int) -> bool:
    """Whether offsets that are gone belong to a commit with changes of about that time."""
    since, until = oldest_ms - _LONGEST_TRANSACTION_MS, newest_ms + _LONGEST_TRANSACTION_MS
    near = [commit for commit in log.commits.values() if not oldest_ms or commit.may_concern(since, until)]
    return any(commit.overlaps(one) for commit in near for one in gone)


def _check_whole(collected: _ChangeCollector, ahead: _ChangeCollector, tables: Mapping[SourceTable, OpenTable]) -> None:
    """Refuse half a transaction, and changes without before images."""
    if collected.chooser.cut:
        raise ConfigError(
            f"the range holds only a part of transactions {_some(collected.chooser.cut)}",
            do_next="give another range, or --transaction",
        )
    known = {_identity(change) for change in collected.changes}
    waiting = [c for c in ahead.changes if c.offset >= _standing(tables[c.source], c) and _identity(c) not in known]
    if waiting:
        raise BadInputError(
            "the tables do not hold the whole selection yet: the stream has not applied all of it",
            do_next="let the stream go on, then try again",
            records=_some(f"{c.topic}/{c.partition}:{c.offset}" for c in waiting),
        )
    refuse_without_images(collected.changes)


def _identity(change: RowChange) -> tuple[SourceTable, str, str, Identity]:
    """The same for a change and its redelivery."""
    return change.source, change.path, change.key, change.identity


def _check_kinds(collected: _ChangeCollector) -> None:
    """Refuse selected records that are no changes of single rows, and times where there are none."""
    if collected.chooser.untimed:
        raise BadInputError(
            f"{counted(collected.chooser.untimed, 'change', 'has', 'have')} no source time, "
            "so nobody knows what is selected",
            do_next="give --transaction, or --from-position and --to-position",
        )
    truncates = [other for other in collected.others if other.is_truncate]
    if truncates:
        raise UnsupportedError(
            "the selection holds a TRUNCATE, which has no before images",
            do_next="restore the table, or leave the TRUNCATE out of the range",
            records=_some(other.name for other in truncates),
        )
    keyless = [other for other in collected.others if other.why == KEYLESS]
    if keyless:
        raise UnsupportedError(
            f"{keyless[0].source}: the rows have no key, so they cannot be told apart",
            do_next="leave the table out: name the others by --table",
        )


def refuse_without_images(changes: Sequence[RowChange]) -> None:
    """Raise BadInputError for changes without a whole before image."""
    bare = [change for change in changes if not change.whole]
    if bare:
        raise BadInputError(
            f"{counted(len(bare), 'change', 'has', 'have')} no whole before image, so nobody knows what they replaced",
            do_next="set binlog_row_image=FULL and an envelope form for the future; --before-images lake takes the "
            "lake's own earlier versions",
            records=_some(f"{c.source} {c.key} at {c.topic}/{c.partition}:{c.offset}" for c in bare),
        )


def _standing(opened: OpenTable, change: RowChange) -> int:
    positions = opened.table.positions.values()
    return max((p.at(change.topic, change.partition) for p in positions), default=0)


def _some(names: Iterable[str]) -> str:
    listed = sorted(set(names))
    return ", ".join(listed[:_NAMED]) + (f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else "")
