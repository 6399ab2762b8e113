"""The ledger: one small file with the stream's own position, replaced after the last table of a batch has committed.

Exactly-once does not depend on it, since every table's commits hold the offsets they cover. The ledger gives the start
position without reading the tables, and it reveals a gap: records that Spark skipped and no table applied. If the
ledger is lost, the start is derived from the tables' newest commits (``recovery.recovered``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from binlake.decode.changes import SourceTable
from binlake.position.binlog_height import Heights
from binlake.position.held_tables import Resync, Stop
from binlake.position.ledger_content import VERSION, LedgerContent, paths
from binlake.position.recorded import NO_TRANSACTIONS, PassedTransactions
from binlake.source.offsets import NO_OFFSETS, OffsetMap, OffsetRange, Offsets, Ranges
from hudilake.errors import BadInputError, CorruptDataError
from hudilake.storage import Storage, StorageNotFoundError

LEDGER = "ledger.json"
_T = TypeVar("_T")


class Ledger:
    """The position of a stream. Only the methods of a ledger change it; the values of its properties are read-only.

    ``table_met`` and ``table_committed`` may be called for different tables at the same time; all other methods are for
    one thread at a time.

    Args:
        stream: the stream's name.
        batch: number of batches finished.
        positions: the next offset of every partition; everything below is in the tables.
        behind: tables that could not commit -> the offsets from which each must be caught up.
        tables: every table ever seen -> its path below the lake's root.
        transactions: the end of the transaction topic below ``positions``.
    """

    def __init__(
        self,
        stream: str,
        *,
        batch: int = 0,
        positions: OffsetMap = NO_OFFSETS,
        behind: Mapping[SourceTable, OffsetMap] = MappingProxyType({}),
        tables: Mapping[SourceTable, str] = MappingProxyType({}),
        transactions: PassedTransactions = NO_TRANSACTIONS,
    ) -> None:
        self._content = LedgerContent(
            stream,
            batch,
            Offsets(positions),
            {table: Offsets(start) for table, start in behind.items()},
            tables=paths(tables),
            transactions=transactions,
        )

    @staticmethod
    def load(state: Storage, stream: str) -> Ledger | None:
        """The stored ledger; None if there is none. Raises CorruptDataError for the ledger of another stream."""
        try:
            data = json.loads(state.read(LEDGER))
        except StorageNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            raise _unusable(state, f"is not JSON: {error}") from error
        if not isinstance(data, dict) or data.get("version") != VERSION or data.get("stream") != stream:
            header = data if isinstance(data, dict) else {}
            raise _unusable(state, f"is of stream {header.get('stream')!r}, version {header.get('version')!r}")
        ledger = Ledger(stream)
        try:
            ledger._content = LedgerContent.from_json(data)
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
            raise _unusable(state, f"cannot be read: {type(error).__name__} {error}") from error
        return ledger

    def save(self, state: Storage) -> None:
        """Replace the stored ledger by this one, whole or not at all."""
        state.write(LEDGER, self._content.to_text().encode())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self._content == other._content

    def __repr__(self) -> str:
        return repr(self._content).replace("LedgerContent", "Ledger", 1)

    # -- what it knows ---------------------------------------------------------------------------------------------

    @property
    def stream(self) -> str:
        """The stream's name."""
        return self._content.stream

    @property
    def batch(self) -> int:
        """The number of batches finished."""
        return self._content.batch

    @property
    def positions(self) -> Offsets:
        """The next offset of every partition; everything below is in the tables, except those ``behind``."""
        return self._content.positions

    @property
    def planned(self) -> Offsets:
        """The end that Spark planned for the newest batch; beyond ``positions`` records wait for their transaction."""
        return self._content.positions.furthest(self._content.planned)

    @property
    def behind(self) -> Mapping[SourceTable, Offsets]:
        """Tables that could not commit -> the offsets from which each must be caught up."""
        return MappingProxyType(self._content.behind)

    @property
    def tables(self) -> Mapping[SourceTable, str]:
        """Every table ever seen -> its path below the lake's root."""
        return MappingProxyType(self._content.tables.data)

    @property
    def sources(self) -> frozenset[SourceTable]:
        """Every table ever seen."""
        return self._content.tables.tables()

    @property
    def topic_ids(self) -> Mapping[str, str]:
        """The id of each topic, which differs from the id of another topic with the same name."""
        return MappingProxyType(self._content.topic_ids)

    @property
    def skipped(self) -> Ranges:
        """Offsets that Kafka had deleted before they were read, and that were skipped on demand."""
        return self._content.skipped

    @property
    def heights(self) -> Heights:
        """The newest binlog position, for each table and topic partition."""
        return self._content.heights

    @property
    def transactions(self) -> PassedTransactions:
        """The end of the part of the transaction topic that lies below ``positions``."""
        return self._content.transactions

    @property
    def paused(self) -> Mapping[SourceTable, int]:
        """Tables that a person has paused -> since when, in ms since the epoch."""
        return MappingProxyType(self._content.paused)

    @property
    def stopped(self) -> Mapping[SourceTable, Stop]:
        """Tables that cannot go on by themselves -> why."""
        return MappingProxyType(self._content.stopped)

    @property
    def resyncs(self) -> Mapping[SourceTable, Resync]:
        """The newest resync of each table that was ever fetched anew."""
        return MappingProxyType(self._content.resyncs)

    @property
    def deletes_unsaid_in(self) -> frozenset[str]:
        """The topics whose newest messages do not say which rows they delete."""
        return self._content.deletes_unsaid_in

    @property
    def nulls_unsaid_in(self) -> frozenset[SourceTable]:
        """The tables whose newest messages, of Maxwell, leave out columns that are null."""
        return self._content.nulls_unsaid_in

    def forgotten_ms(self, table: SourceTable) -> int:
        """The time of the newest request to forget a table that was carried out; 0 for none."""
        return self._content.forgotten.get(table, 0)

    @property
    def late(self) -> list[SourceTable]:
        """Tables that are behind and are caught up by the stream itself."""
        held = self._content.paused.keys() | self._content.stopped.keys()
        return [table for table in self._content.behind if table not in held]

    def applied(self, table: SourceTable) -> Offsets:
        """The stream's positions in a table when it last committed; empty if they are not known."""
        return self._content.applied.get(table, NO_OFFSETS)

    def skipped_before(self, ranges: Ranges, standing: OffsetMap) -> Ranges:
        """The skipped offsets between a table's positions (``standing``) and the ends of the ranges it commits."""
        applied = Offsets(standing)
        return Ranges(
            gone
            for r in ranges
            for gone in self._content.skipped
            if (gone.topic, gone.partition) == (r.topic, r.partition)
            and applied.at(r.topic, r.partition) < gone.end <= r.end
        )

    def waiting(self, table: SourceTable) -> Ranges:
        """The ranges that must still be delivered to a table which is behind."""
        start = self._content.behind[table]
        positions = self._content.positions
        return start.ranges_to(Offsets.of_places((t, p, positions[t][p]) for t, p, _ in start.places()))

    def check_no_gap(self, spark_start: OffsetMap) -> None:
        """Raise BadInputError if Spark continues after records that this stream has not applied."""
        for topic, partition, start in Offsets(spark_start).places():
            mine = self._content.positions.at(topic, partition)
            known = max(mine, self._content.planned.at(topic, partition))
            if self._content.positions.knows(topic, partition) and start > known:
                raise BadInputError(
                    f"Spark's checkpoint continues at offset {start}, but the tables hold everything only up to "
                    f"{mine}: {start - mine} offsets would be lost",
                    do_next="delete the stream's checkpoint directory: the stream then continues "
                    "at the ledger's position",
                    topic=topic,
                    partition=partition,
                    spark=start,
                    ledger=mine,
                )

    # -- how it changes --------------------------------------------------------------------------------------------

    def begin_at(self, start: OffsetMap) -> None:
        """Set the positions to the offsets at which the stream starts."""
        self._content.positions = self._content.positions.merge(start)

    def number(self, batch: int) -> None:
        """Set the number of the current batch, for batches that the caller numbers."""
        self._content.batch = batch

    def note_planned(self, end: OffsetMap) -> None:
        """Note the end that Spark planned, for a batch that may be cut before it."""
        self._content.planned = self._content.planned.merge(end)

    def advance(self, end: OffsetMap) -> None:
        """Note a finished batch: everything below ``end`` is in the tables, except those noted as behind."""
        self._content.batch += 1
        self._content.positions = self._content.positions.merge(end)

    def climb(self, heights: Heights) -> None:
        """Note the newest binlog positions."""
        self._content.heights = heights

    def table_met(self, table: SourceTable, path: str) -> None:
        """Note a table that exists, and its path."""
        self._content.tables[table] = path

    def table_committed(self, table: SourceTable, path: str, standing: OffsetMap) -> None:
        """Note a table that has committed. ``standing``: the stream's positions in the table after the commit."""
        self._content.tables[table] = path
        self._content.applied[table] = Offsets(standing)

    def note_behind(self, table: SourceTable, start: OffsetMap) -> None:
        """Note the offsets from which a table must be caught up, unless earlier ones are noted already."""
        self._content.behind[table] = self._content.behind.get(table, NO_OFFSETS).earliest(start)

    def pause(self, table: SourceTable, topics: Iterable[str], since_ms: int) -> None:
        """Let the records of a table wait from here on. ``topics``: those that feed it."""
        self._content.paused[table] = since_ms
        self._hold(table, topics)

    def unpause(self, table: SourceTable) -> None:
        """Let a paused table go on; it is behind until it has caught up."""
        self._content.paused.pop(table, None)

    def stop(self, table: SourceTable, stop: Stop, topics: Iterable[str] = ()) -> None:
        """Note that a table cannot go on by itself. ``topics``: those that feed it, unless it is behind already."""
        self._content.stopped[table] = stop
        self._hold(table, topics)

    def note_forgotten(self, table: SourceTable, asked_ms: int) -> None:
        """Note that a request to forget a table is carried out."""
        self._content.forgotten[table] = asked_ms

    def forget(self, table: SourceTable, asked_ms: int) -> None:
        """Take back that a table has commits. If records wait for it, it begins anew with them."""
        self.note_forgotten(table, asked_ms)
        self._content.tables.pop(table, None)
        self._content.applied.pop(table, None)
        self._content.stopped.pop(table, None)

    def _hold(self, table: SourceTable, topics: Iterable[str]) -> None:
        positions = self._content.positions
        self.note_behind(table, Offsets({topic: positions[topic] for topic in topics if topic in positions}))

    def note_resync(self, table: SourceTable, resync: Resync) -> None:
        """Note how far a table's resync has come."""
        self._content.resyncs[table] = resync

    def caught_up(self, table: SourceTable, ranges: Ranges) -> None:
        """Note ranges that a table which is behind has applied; with no ranges left it is no longer behind."""
        self._content.behind[table] = self._content.behind[table].merge(ranges.ends())
        self._content.stopped.pop(table, None)
        if not self.waiting(table):
            del self._content.behind[table]

    def notice_restore(self, table: SourceTable, standing: OffsetMap) -> bool:
        """Note a table as behind if its positions are lower than when the ledger was saved: the table was restored, and
        the records since then must be delivered again. A partition without a position is read from offset 0.

        Returns whether the table was restored. ``standing``: the stream's positions in the table.
        """
        back = Offsets(standing).short_of(self._content.applied.get(table, NO_OFFSETS))
        if back:
            self.note_behind(table, back)
            self._content.applied[table] = Offsets(standing)
        return bool(back)

    def note_topic_ids(self, ids: Mapping[str, str]) -> None:
        """Note the ids of topics."""
        self._content.topic_ids |= ids

    def note_deletes(self, said: Mapping[str, bool]) -> None:
        """Note of topics whether their messages say which rows they delete."""
        self._content.deletes_unsaid_in = _unsaid(self.deletes_unsaid_in, said)

    def note_nulls(self, said: Mapping[SourceTable, bool]) -> None:
        """Note of tables whether their messages have the columns that are null."""
        self._content.nulls_unsaid_in = _unsaid(self.nulls_unsaid_in, said)

    def note_skipped(self, gone: OffsetRange) -> None:
        """Note offsets that Kafka had deleted before they were read, and that are skipped on demand."""
        if gone not in self._content.skipped:
            self._content.skipped = Ranges([*self._content.skipped, gone])

    def skip_behind(self, table: SourceTable, gone: OffsetRange) -> None:
        """Catch up a table that is behind only from the end of offsets that Kafka has deleted."""
        self._content.behind[table] = self._content.behind[table].merge(Ranges([gone]).ends())

    def note_transactions(self, passed: PassedTransactions) -> None:
        """Note how far the transaction topic was read."""
        self._content.transactions = passed


def _unsaid(known: frozenset[_T], said: Mapping[_T, bool]) -> frozenset[_T]:
    """What does not say something, by its newest messages and, without any, by those before."""
    return (known - said.keys()) | {of for of, says in said.items() if not says}


def _unusable(state: Storage, what: str) -> CorruptDataError:
    return CorruptDataError(
        f"the ledger {what}",
        do_next="check state.uri and name; or delete the file: the position is then worked out from the tables",
        path=f"{state.uri}/{LEDGER}",
    )
