"""Reads from a table which records were brought into it, and which deletes it may have dropped.

Where rows have keys of the source, an event that comes twice is the same row. In an append table, or one whose rows are
known by content, it would be a second row, or remove another row of the same content. So a replay leaves out what a
stream has brought, and the stream what a replay has brought: both go by the records' topic, partition and offset. Bare
events, which have none, are taken each time that a file has them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import pyarrow.compute as pc

from binlake.decode.changes import Op
from binlake.decode.order import OrderPlace
from binlake.position.record_reader import RecordReader
from binlake.rows.upsert.merge import Place
from binlake.rows.upsert.parcel import Parcel, unpack
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD, Target, key_columns, tells_records
from binlake.settings import CompactionSettings, TableRules
from binlake.source.offsets import NO_RANGES, OffsetRange, Ranges
from binlake.tables.lake_table import LakeTable
from hudilake.clock import parse_instant
from hudilake.errors import BadInputError, UnsupportedError
from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.format.timeline.instant import COMMIT
from hudilake.read.slice import read_file_slice
from hudilake.services.compaction.completion import recorded_horizon
from hudilake.table.table import HudiTable

_MS_PER_HOUR = 3_600_000
#: The most ranges of offsets that a commit names: 20 bytes each.
MOST_RANGES = 10_000


def replayed_records(table: HudiTable) -> dict[tuple[str, int], str]:
    """(name, digest) of every record that was replayed into a table -> its commit, archived ones included.

    Reads every commit of the active timeline. Raises CorruptDataError, StorageError.
    """
    return {
        (name, digest): time
        for time, body in all_commits(table)
        for name, digest in (RecordReader.of_commit(body.extra).replayed or {}).items()
    }


def all_commits(table: HudiTable) -> Iterator[tuple[str, CommitMetadata]]:
    """All completed instants with metadata, archived ones included, and their metadata.

    Errors as ``replayed_records``.
    """
    for old in table.timeline.history().commits():
        yield old.requested_time, CommitMetadata.from_bytes(old.metadata, f"history of {old.requested_time}")
    for instant in table.timeline.completed():
        yield instant.requested_time, table.timeline.commit_metadata(instant)


def commit_times(table: HudiTable) -> set[str]:
    """The requested times of all commits of a table, archived ones included. Errors as ``replayed_records``."""
    archived = {old.requested_time for old in table.timeline.history().commits()}
    return archived | {instant.requested_time for instant in table.timeline.completed()}


def forgets_deletes_since(table: HudiTable, rules: TableRules) -> int | None:
    """The time (ms) before which deletes may have been dropped, by a compaction or with old tombstones; None if none
    has.

    For a record older than that, a newer delete may have existed that is not stored any more. Of a table of cells, it
    is the horizon of its compactions. Errors as ``replayed_records``.
    """
    if rules.cells is not None:
        return recorded_horizon(table)
    compacted = [i.requested_time for i in table.timeline.completed() if i.action == COMMIT]
    compacted += [old.requested_time for old in table.timeline.history().commits() if old.action == COMMIT]
    if not compacted:
        return None
    hours = (rules.compaction or CompactionSettings()).tombstone_retention_hours
    since = parse_instant(max(compacted)) - int(hours * _MS_PER_HOUR)
    if table.config.kind.copies and parse_instant(min(compacted)) >= since:
        return None  # its tombstones are as old as the commits that deleted, and none is older
    return since


class LiveKeys:
    """The record keys that have a live row, by what a key names a row in; each file group is read once.

    That is a file group where it is computed from the key, else a partition, or the whole table if the index is global.
    """

    def __init__(self, table: LakeTable) -> None:
        self._table = table
        self._live: dict[Place | None, dict[str, int]] = {}

    def lack(self, parcels: Sequence[Parcel]) -> bool:
        """Whether any upsert of the parcels has a key without a live row and would create one. For a key with a live
        row the ordering value decides. Errors as ``read_file_slice``."""
        for parcel in parcels:
            rows = unpack([parcel])
            upserts = rows.filter(pc.equal(rows.column("__op"), int(Op.UPSERT)))
            live = self._of(self._within((parcel.partition_path, parcel.bucket))) if len(upserts) else {}
            if not live.keys() >= set(upserts.column(KEY).to_pylist()):
                return True
        return False

    def have_other_order(self, parcels: Sequence[Parcel]) -> bool:
        """Whether any row of the parcels, which Kafka's offset orders, has the key of a live row that something else
        orders, or an offset of another epoch: which of them is newer is not known. Errors as ``read_file_slice``."""
        for parcel in parcels:
            rows, live = unpack([parcel]), self._of(self._within((parcel.partition_path, parcel.bucket)))
            orders = rows.column("__order").to_pylist()
            for key, order in zip(rows.column(KEY).to_pylist(), orders, strict=True):
                stored, own = OrderPlace.of(live.get(key, order)), OrderPlace.of(order)
                if (stored.kind, stored.epoch) != (own.kind, own.epoch):
                    return True
        return False

    def _within(self, place: Place) -> Place | None:
        return place if self._table.hudi.config.kind.scope.by_partition else None

    def _of(self, place: Place | None) -> dict[str, int]:
        if place not in self._live:
            table = self._table.hudi
            mine = [piece for piece in table.file_slices() if self._within(self._table.rows.place_of(piece)) == place]
            ordered, live = ORDER_FIELD in table.schema.names, dict[str, int]()
            for piece in mine:
                rows = read_file_slice(table, piece, columns=[KEY, ORDER_FIELD] if ordered else [KEY])
                orders = rows.column(ORDER_FIELD).to_pylist() if ordered else [-1] * len(rows)
                live.update(zip(rows.column(KEY).to_pylist(), orders, strict=True))
            self._live[place] = live
        return self._live[place]


def replaying_rules(rules: TableRules) -> TableRules:
    """The rules of a table for a replay: table services are left to the table's stream and to ``binlake compact``."""
    return dataclasses.replace(rules, compaction=None, retention=None)


def delivered(table: LakeTable) -> Ranges:
    """The records that streams and replays have brought into a table whose rows do not tell; none for any other table.

    Reads every commit, archived ones too. Raises CorruptDataError, StorageError, and as ``RecordReader``.
    """
    if tells_records(table.hudi.config, table.merging):
        return NO_RANGES
    covered: list[OffsetRange] = []
    skipped: list[OffsetRange] = []
    for _, body in all_commits(table.hudi):
        record = RecordReader.of_commit(body.extra)
        covered += record.ranges
        skipped += record.skipped
    return Ranges((*Ranges(covered).without(Ranges(skipped)), *table.brought)).united()


def refuse_out_of_turn(table: LakeTable, records: Ranges, known: Ranges) -> None:
    """Raise UnsupportedError for records of a table that counts facts which lie below others that it has: its heights
    (``binlake.rows.merging.engines.heights``) would take them for counted.

    Args:
        table: any table.
        records: those of a portion of a dump, without others between them.
        known: those that it has.
    """
    if not table.merging.counts_once:
        return
    ends = known.ends()
    late = [one for one in records.without(known) if one.end < ends.at(one.topic, one.partition)]
    if late:
        raise UnsupportedError(
            "records come after newer ones of their partition, and the table, which takes each fact once, would take "
            "them for known",
            do_next="binlake quarantine replay brings them in; replay further hours in their order",
            table=table.rules.path,
            records=", ".join(f"{one.topic}/{one.partition}:{one.start}-{one.end - 1}" for one in late[:3]),
        )


def with_brought(known: Ranges, more: Ranges, target: Target) -> Ranges:
    """The records that replays have brought, with those of a portion. Raises BadInputError for too many ranges of a
    table without a key; those of other tables become one of each partition, and their heights tell the rest."""
    united = Ranges((*known, *more)).united()
    if len(united) > MOST_RANGES and key_columns(target.config):
        starts = united.starts()
        return Ranges(OffsetRange(t, p, starts.at(t, p), end) for t, p, end in united.ends().places())
    if len(united) > MOST_RANGES:
        raise BadInputError(
            f"the records that dumps have brought lie in {len(united)} ranges of offsets, and a commit of a table "
            f"without a key names {MOST_RANGES} at most",
            do_next="bring these hours by the stream, or load the table anew under a lake of its own",
            table=target.path,
        )
    return united
