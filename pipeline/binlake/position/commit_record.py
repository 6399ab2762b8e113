"""The commit record: the extra metadata that a stream writes into a table's commit.

The commit record makes the stream exactly-once: it holds the offsets that the commit covers, and for each stream the
offsets below which all events are in the table. ``record_reader`` defines the keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from binlake.decode.changes import SourceTable
from binlake.position.derived_position import DerivedPosition
from binlake.position.record_reader import RecordKey, RecordReader
from binlake.position.recorded import (
    DumpHours,
    RecordedBackfill,
    RecordedLoad,
    RecordedPortion,
    RecordedRepair,
    RecordedTransactions,
    Revert,
    reverts_to_text,
)
from binlake.rows.merging.engines.heights import FactHeights
from binlake.rows.upsert.keyless import KeylessState
from binlake.rows.upsert.route import Counts
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED, Truncates
from binlake.schema.rules.entries import DdlEntry, entries_to_text
from binlake.schema.rules.row_places import NO_SNAPSHOTS, SnapshotPlaces
from binlake.source.offsets import NO_OFFSETS, NO_RANGES, Offsets, Ranges


@dataclass(frozen=True)
class CommitNotes:
    """The optional entries of a commit record. The key of an entry that is None, or has no ranges, is left out.

    Args:
        skipped: offsets that Kafka had deleted before they were read, and that were skipped on demand.
        transactions: the transactions of a stream that applies whole transactions only.
        portion: the portion of a dump that is replayed.
        portion_table: the table whose rows of the portion the commit holds.
        hours: all hours of dumps that were replayed so far.
        ddl: every statement that was judged for the table so far.
        replayed: the quarantined records that the commit contains, name -> digest.
        source_times: the source's times of the oldest and of the newest change, in ms since the epoch.
        reverts: all reverts of the table so far; only the commit of a revert has them.
        repaired: the repair that made the commit.
        key: the record key fields that the table has since this commit, and the commit's requested time.
        backfill: the portion of a backfill that the commit holds.
        derived: how far a wide table follows its table of cells.
        load: how far the table is loaded from the source's server.
        brought: the records that replays of dumps have brought so far.
        dumped: how far they have brought each topic.
    """

    skipped: Ranges = NO_RANGES
    transactions: RecordedTransactions | None = None
    portion: RecordedPortion | None = None
    portion_table: SourceTable | None = None
    hours: DumpHours | None = None
    ddl: tuple[DdlEntry, ...] | None = None
    replayed: Mapping[str, int] | None = None
    source_times: tuple[int, int] | None = None
    reverts: tuple[Revert, ...] = ()
    repaired: RecordedRepair | None = None
    key: tuple[tuple[str, ...], str] | None = None
    backfill: RecordedBackfill | None = None
    derived: DerivedPosition | None = None
    load: RecordedLoad | None = None
    brought: Ranges = NO_RANGES
    dumped: Offsets = NO_OFFSETS

    def to_extra(self) -> dict[str, str]:
        """The notes as extra metadata."""
        portion_table, ddl = self.portion_table, self.ddl
        texts = {
            RecordKey.SKIPPED: _compact(self.skipped.by_partition()) if self.skipped else None,
            RecordKey.TRANSACTIONS: self.transactions.to_text() if self.transactions is not None else None,
            RecordKey.PORTION: self.portion.to_text() if self.portion is not None else None,
            RecordKey.PORTION_TABLE: json.dumps(_names(portion_table)) if portion_table is not None else None,
            RecordKey.HOURS: _compact(self.hours) if self.hours is not None else None,
            RecordKey.DDL: entries_to_text(ddl) if ddl is not None else None,
            RecordKey.REPLAYED: _compact(self.replayed, ascii_only=False) if self.replayed is not None else None,
            RecordKey.KEY: _compact(self.key, ascii_only=False) if self.key is not None else None,
            RecordKey.SOURCE_TIMES: _compact(self.source_times) if self.source_times is not None else None,
            RecordKey.REVERTS: reverts_to_text(self.reverts) if self.reverts else None,
            RecordKey.REPAIRED: self.repaired.to_text() if self.repaired is not None else None,
            RecordKey.BACKFILL: self.backfill.to_text() if self.backfill is not None else None,
            RecordKey.DERIVED: self.derived.to_text() if self.derived is not None else None,
            RecordKey.LOAD: self.load.to_text() if self.load is not None else None,
            RecordKey.DUMPED: _compact(self.dumped.to_json()) if self.dumped else None,
            RecordKey.BROUGHT: _compact(self.brought.by_partition()) if self.brought else None,
        }
        return {str(key): text for key, text in texts.items() if text is not None}


NO_NOTES = CommitNotes()


@dataclass(frozen=True)
class CommitRecord:
    """The entries of one commit.

    Args:
        stream: the stream that made the commit.
        batch: the number of the stream's batch.
        counts: the fates of the batch's records.
        source: the source table whose rows the table holds.
        origin: its name at the source, where a route gives it another name and merges no other table into it.
        ranges: the offsets that the commit covers; a commit without ranges moves no position.
        positions: stream -> offsets below which everything is in the table; None in a commit that moves no position.
        truncates: the rows that TRUNCATE has removed from the table.
        keyless: the state of a table without a key.
        notes: the optional entries.
        snapshots: the places of the snapshot rows that the commit adds; after ``upon``, of all rows of the table. The
            key is left out if there are none, or the commit adds nothing to those known.
        heights: how far facts are counted; None for a commit that counts none.
        repeated: the parts of ``ranges`` that the table had before: a lost ledger delivers them again.
    """

    stream: str
    batch: int
    counts: Counts
    source: SourceTable | None = None
    origin: SourceTable | None = None
    ranges: Ranges = NO_RANGES
    positions: Mapping[str, Offsets] | None = None
    truncates: Truncates = NOTHING_TRUNCATED
    keyless: KeylessState | None = None
    notes: CommitNotes = NO_NOTES
    snapshots: SnapshotPlaces = NO_SNAPSHOTS
    heights: FactHeights | None = None
    repeated: Ranges = NO_RANGES

    def upon(
        self, positions: Mapping[str, Offsets], truncates: Truncates, snapshots: SnapshotPlaces = NO_SNAPSHOTS
    ) -> CommitRecord:
        """The record of a commit to a table with these positions, these earlier TRUNCATEs and these snapshot rows.

        Positions never go back, although a batch that is cut again after a crash may end earlier than the first time.
        """
        places = snapshots.merged(self.snapshots)
        places = NO_SNAPSHOTS if places is snapshots else places
        record = replace(self, truncates=truncates.merged(self.truncates).bounded(), snapshots=places)
        if not self.ranges:
            return record
        standing = positions.get(self.stream, NO_OFFSETS)
        reached = standing.furthest(self.ranges.ends())
        return replace(record, positions={**positions, self.stream: reached}, repeated=self.ranges.below(standing))

    def to_extra(self) -> dict[str, str]:
        """The record as extra metadata."""
        extra = {
            RecordKey.STREAM: self.stream,
            RecordKey.BATCH: str(self.batch),
            RecordKey.COUNTS: _compact(vars(self.counts)),
            RecordKey.TRUNCATED: self.truncates.to_text(),
            **self.notes.to_extra(),
        }
        if self.ranges:
            extra[RecordKey.OFFSETS] = _compact(self.ranges.to_json())
        if self.repeated:
            extra[RecordKey.REPEATED] = _compact(self.repeated.to_json())
        if self.positions is not None:
            extra[RecordKey.POSITIONS] = _compact({stream: o.to_json() for stream, o in self.positions.items()})
        if self.source is not None:
            origin = _names(self.origin) if self.origin not in (None, self.source) else []
            extra[RecordKey.SOURCE] = json.dumps([*_names(self.source), *origin], ensure_ascii=False)
        if self.keyless is not None:
            extra[RecordKey.KEYLESS] = self.keyless.to_text()
        if self.heights is not None:
            extra[RecordKey.HEIGHTS] = self.heights.to_text()
        if self.snapshots.runs:
            extra[RecordKey.SNAPSHOTS] = _compact(self.snapshots.to_json())
        return {str(key): text for key, text in extra.items()}

    @staticmethod
    def from_extra(extra: Mapping[str, str]) -> CommitRecord | None:
        """The record of a commit; None for a commit of another writer.

        Raises UnsupportedError for a record of a later version; ValueError, KeyError, TypeError or AttributeError for
        a value that cannot be read.
        """
        reader = RecordReader.of_commit(extra)
        stream, counts = reader.stream, reader.counts
        if stream is None:
            return None
        if counts is None:
            raise ValueError("there are no counts")
        return CommitRecord(
            stream,
            reader.batch,
            counts,
            reader.source,
            reader.origin,
            reader.ranges,
            reader.positions,
            reader.truncates,
            reader.keyless,
            CommitNotes(
                reader.skipped,
                reader.transactions,
                reader.portion,
                reader.portion_table,
                reader.hours,
                reader.ddl,
                reader.replayed,
                reader.source_times,
                reader.reverts,
                reader.repaired,
                reader.key,
                reader.backfill,
                reader.derived,
                reader.load,
                reader.brought,
                reader.dumped,
            ),
            reader.snapshots,
            reader.heights if RecordKey.HEIGHTS in extra else None,
            reader.repeated,
        )


def _compact(data: object, *, ascii_only: bool = True) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=ascii_only)


def _names(table: SourceTable) -> list[str]:
    return [table.database, table.table]
