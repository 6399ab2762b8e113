"""The keys of a commit's extra metadata, and the reader of single values: of one commit, or the newest of a table.

A record has a version. A record without a version key has version 1: it was written before the key was introduced.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol

from binlake.decode.changes import SourceTable
from binlake.position.derived_position import DerivedPosition
from binlake.position.recorded import (
    DumpHours,
    RecordedBackfill,
    RecordedLoad,
    RecordedPortion,
    RecordedRepair,
    RecordedTransactions,
    Revert,
    reverts_from_text,
)
from binlake.rows.merging.engines.heights import FactHeights
from binlake.rows.upsert.keyless import KeylessState
from binlake.rows.upsert.route import Counts
from binlake.rows.upsert.truncates import Truncates
from binlake.schema.rules.entries import DdlEntry, entries_from_text
from binlake.schema.rules.row_places import SnapshotPlaces
from binlake.source.offsets import NO_OFFSETS, NO_RANGES, Offsets, Ranges
from hudilake.errors import UnsupportedError
from hudilake.storage import Storage

#: The newest version that can be read, and the version that is written.
VERSION = 1


class RecordKey(StrEnum):
    """The keys of a commit's extra metadata."""

    VERSION = "binlake.version"
    STREAM = "binlake.stream"
    BATCH = "binlake.batch"
    COUNTS = "binlake.counts"
    TRUNCATED = "binlake.truncated"
    SKIPPED = "binlake.skipped"
    TRANSACTIONS = "binlake.transactions"
    PORTION = "binlake.dump"
    PORTION_TABLE = "binlake.dump_table"
    HOURS = "binlake.dump_hours"
    DDL = "binlake.ddl"
    REPLAYED = "binlake.replayed"
    REPAIRED = "binlake.repaired"
    BACKFILL = "binlake.backfill"
    DERIVED = "binlake.derived"
    SOURCE_TIMES = "binlake.source_times"
    OFFSETS = "binlake.offsets"
    REPEATED = "binlake.repeated"
    POSITIONS = "binlake.positions"
    SOURCE = "binlake.source"
    KEYLESS = "binlake.keyless"
    HEIGHTS = "binlake.heights"
    SNAPSHOTS = "binlake.snapshots"
    REVERTS = "binlake.reverts"
    KEY = "binlake.key"
    LOAD = "binlake.load"
    BROUGHT = "binlake.brought"
    DUMPED = "binlake.dumped"


class NewestValues(Protocol):
    """A table, or the history of one."""

    @property
    def storage(self) -> Storage:
        """The storage of the table."""
        ...

    def extra_values(self, key: str, *beside: str) -> Mapping[str, str]:
        """The value of ``key`` in the newest commit that has it, and the values of ``beside`` in the same commit."""
        ...


class RecordReader:
    """Values of commit records, each read on access.

    Every property raises UnsupportedError for a record of a later version, and ValueError, KeyError, TypeError or
    AttributeError for a value that cannot be read. A reader of a table raises CorruptDataError and StorageError too.
    """

    def __init__(self, values: Callable[[RecordKey], Mapping[str, str]], path: str | None = None) -> None:
        self._values, self._path = values, path

    @staticmethod
    def of_commit(extra: Mapping[str, str]) -> RecordReader:
        """The values of one commit."""
        return RecordReader(lambda key: extra)

    @staticmethod
    def newest_of(table: NewestValues) -> RecordReader:
        """For every key, the value in the newest commit of the table that has the key."""
        return RecordReader(lambda key: table.extra_values(key, RecordKey.VERSION), table.storage.uri)

    @property
    def stream(self) -> str | None:
        """The stream that made the commit; None for a commit of another writer."""
        return self._text(RecordKey.STREAM)

    @property
    def batch(self) -> int:
        """The number of the stream's batch."""
        return int(self._text(RecordKey.BATCH) or 0)

    @property
    def counts(self) -> Counts | None:
        """The fates of the batch's records."""
        counts = self._json(RecordKey.COUNTS)
        return Counts(**counts) if counts is not None else None

    @property
    def truncates(self) -> Truncates:
        """The rows that TRUNCATE has removed from the table."""
        return Truncates.from_text(self._text(RecordKey.TRUNCATED))

    @property
    def skipped(self) -> Ranges:
        """Offsets that Kafka had deleted before they were read, and that were skipped on demand."""
        return Ranges.from_partitions(self._json(RecordKey.SKIPPED) or {})

    @property
    def transactions(self) -> RecordedTransactions | None:
        """The transaction that the commit ends with, and how far the transaction topic was read."""
        text = self._text(RecordKey.TRANSACTIONS)
        return RecordedTransactions.from_text(text) if text is not None else None

    @property
    def portion(self) -> RecordedPortion | None:
        """The portion of a dump that the commit belongs to."""
        text = self._text(RecordKey.PORTION)
        return RecordedPortion.from_text(text) if text is not None else None

    @property
    def portion_table(self) -> SourceTable | None:
        """The table whose rows of the portion the commit holds."""
        names = self._json(RecordKey.PORTION_TABLE)
        return SourceTable(*names) if names is not None else None

    @property
    def hours(self) -> DumpHours | None:
        """All hours of dumps that were replayed so far."""
        hours = self._json(RecordKey.HOURS)
        return {root: [(first, end) for first, end in said] for root, said in hours.items()} if hours else hours

    @property
    def ddl(self) -> tuple[DdlEntry, ...] | None:
        """Every statement that was judged for the table so far."""
        text = self._text(RecordKey.DDL)
        return entries_from_text(text) if text is not None else None

    @property
    def replayed(self) -> Mapping[str, int] | None:
        """The quarantined records that the commit contains, name -> digest."""
        names: Mapping[str, int] | None = self._json(RecordKey.REPLAYED)
        return names

    @property
    def repaired(self) -> RecordedRepair | None:
        """The repair that made the commit."""
        text = self._text(RecordKey.REPAIRED)
        return RecordedRepair.from_text(text) if text is not None else None

    @property
    def backfill(self) -> RecordedBackfill | None:
        """The portion of a backfill that the commit holds."""
        text = self._text(RecordKey.BACKFILL)
        return RecordedBackfill.from_text(text) if text is not None else None

    @property
    def load(self) -> RecordedLoad | None:
        """How far the table is loaded from the source's server; None for a table that was not."""
        text = self._text(RecordKey.LOAD)
        return RecordedLoad.from_text(text) if text is not None else None

    @property
    def unfinished_load(self) -> RecordedLoad | None:
        """How far the first load of the table is, if it is under way or was interrupted."""
        load = self.load
        return load if load is not None and not load.done else None

    @property
    def derived(self) -> DerivedPosition | None:
        """How far a wide table follows its table of cells."""
        text = self._text(RecordKey.DERIVED)
        return DerivedPosition.from_text(text) if text is not None else None

    @property
    def source_times(self) -> tuple[int, int] | None:
        """The source's times of the oldest and of the newest change, in ms since the epoch."""
        times = self._json(RecordKey.SOURCE_TIMES)
        return (times[0], times[1]) if times is not None else None

    @property
    def repeated(self) -> Ranges:
        """The parts of the ranges that the table had before."""
        return Ranges.from_json(self._json(RecordKey.REPEATED) or {})

    @property
    def ranges(self) -> Ranges:
        """The offsets that the commit covers."""
        ranges = self._json(RecordKey.OFFSETS)
        return Ranges.from_json(ranges) if ranges is not None else NO_RANGES

    @property
    def positions(self) -> Mapping[str, Offsets] | None:
        """Stream -> offsets below which everything is in the table."""
        streams = self._json(RecordKey.POSITIONS)
        return {s: Offsets.from_json(topics) for s, topics in streams.items()} if streams is not None else None

    def positions_of(self, stream: str) -> Offsets:
        """The offsets below which everything of one stream is in the table."""
        return (self.positions or {}).get(stream, NO_OFFSETS)

    @property
    def source(self) -> SourceTable | None:
        """The source table whose rows the table holds."""
        names = self._json(RecordKey.SOURCE)
        return SourceTable(*names[:2]) if names is not None else None

    @property
    def origin(self) -> SourceTable | None:
        """The source table's name at the source, where a route gives it another name."""
        names = self._json(RecordKey.SOURCE) or ()
        return SourceTable(*names[2:4]) if len(names) > 2 else None

    @property
    def keyless(self) -> KeylessState | None:
        """The state of a table without a key."""
        text = self._text(RecordKey.KEYLESS)
        return KeylessState.from_text(text) if text is not None else None

    @property
    def heights(self) -> FactHeights:
        """How far the facts of an aggregated table are counted."""
        return FactHeights.from_text(self._text(RecordKey.HEIGHTS))

    @property
    def key(self) -> tuple[tuple[str, ...], str] | None:
        """The record key fields that a commit gave the table, and its requested time; None for the first key."""
        said = self._json(RecordKey.KEY)
        return (tuple(said[0]), said[1]) if said is not None else None

    @property
    def snapshots(self) -> SnapshotPlaces:
        """The places at which the table's snapshot rows were read."""
        return SnapshotPlaces.from_json(self._json(RecordKey.SNAPSHOTS) or ())

    @property
    def brought(self) -> Ranges:
        """The records that replays of dumps have brought, of a table whose rows have no key of the source."""
        return Ranges.from_partitions(self._json(RecordKey.BROUGHT) or {})

    @property
    def dumped(self) -> Offsets:
        """How far replays of dumps have brought the records of each topic, whatever a stream has."""
        return Offsets.from_json(self._json(RecordKey.DUMPED) or {})

    @property
    def reverts(self) -> tuple[Revert, ...]:
        """All reverts of the table so far, oldest first."""
        return reverts_from_text(self._text(RecordKey.REVERTS))

    def _json(self, key: RecordKey) -> Any:  # noqa: ANN401 - decoded JSON
        text = self._text(key)
        return json.loads(text) if text is not None else None

    def _text(self, key: RecordKey) -> str | None:
        values = self._values(key)
        version = int(values.get(RecordKey.VERSION, VERSION))
        if version > VERSION:
            raise UnsupportedError(
                f"a commit has a record of version {version}, and this binlake knows versions up to {VERSION}",
                do_next="use the version of binlake that writes the table, or a later version",
                key=key.value,
                table=self._path,
            )
        return values.get(key)
