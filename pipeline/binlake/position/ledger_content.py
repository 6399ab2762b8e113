"""The content of a ledger, and the format of its file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from binlake.decode.changes import SourceTable
from binlake.position.binlog_height import Heights, heights_from_json, heights_to_json
from binlake.position.held_tables import Resync, Stop
from binlake.position.recorded import NO_TRANSACTIONS, PassedTransactions
from binlake.source.offsets import NO_OFFSETS, NO_RANGES, Offsets, Ranges

VERSION = 1


@dataclass
class LedgerContent:
    """The stored values of a stream.

    Args:
        stream: the stream's name.
        batch: number of batches finished.
        positions: the next offset of every partition; everything below is in the tables.
        behind: tables that could not commit -> the offsets from which each must be caught up.
        applied: the stream's positions in each table when the ledger was saved.
        tables: every table ever seen -> its path below the lake's root.
        topic_ids: the id of each topic, which differs from the id of another topic with the same name.
        skipped: the offsets that Kafka had deleted and that were skipped on demand.
        heights: the newest binlog position, for each table and topic partition.
        planned: the end that Spark planned for the newest batch, where the batch was cut before it.
        transactions: the end of the part of the transaction topic that lies below ``positions``.
        paused: tables that a person has paused -> since when, in ms since the epoch. They are ``behind`` too.
        stopped: tables that cannot go on by themselves. They are ``behind`` too.
        resyncs: the newest resync of each table that was ever fetched anew.
        forgotten: tables that were forgotten -> the request that asked for it, in ms since the epoch.
    """

    stream: str
    batch: int = 0
    positions: Offsets = NO_OFFSETS
    behind: dict[SourceTable, Offsets] = field(default_factory=dict)
    applied: dict[SourceTable, Offsets] = field(default_factory=dict)
    tables: dict[SourceTable, str] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    skipped: Ranges = NO_RANGES
    heights: Heights = field(default_factory=dict)
    planned: Offsets = NO_OFFSETS
    transactions: PassedTransactions = NO_TRANSACTIONS
    paused: dict[SourceTable, int] = field(default_factory=dict)
    stopped: dict[SourceTable, Stop] = field(default_factory=dict)
    resyncs: dict[SourceTable, Resync] = field(default_factory=dict)
    forgotten: dict[SourceTable, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The content as values for ``json.dumps``."""
        return {
            "version": VERSION,
            "stream": self.stream,
            "batch": self.batch,
            "positions": self.positions.to_json(),
            "behind": {_name(table): start.to_json() for table, start in self.behind.items()},
            "applied": {_name(table): standing.to_json() for table, standing in self.applied.items()},
            "tables": {_name(table): path for table, path in self.tables.items()},
            "topic_ids": self.topic_ids,
            "skipped": self.skipped.by_partition(),
            "heights": heights_to_json(self.heights),
            "planned": self.planned.to_json(),
            "transactions_ms": self.transactions.ms,
            "transactions_ended": self.transactions.ended,
            "torn": self.transactions.torn,
            **self._held_to_json(),
        }

    def _held_to_json(self) -> dict[str, Any]:
        """The tables that are held back; without any, the ledger is that of an earlier version."""
        held: dict[str, dict[str, Any]] = {
            "paused": {_name(table): since_ms for table, since_ms in self.paused.items()},
            "stopped": {_name(table): stop.to_json() for table, stop in self.stopped.items()},
            "resyncs": {_name(table): resync.to_json() for table, resync in self.resyncs.items()},
            "forgotten": {_name(table): asked_ms for table, asked_ms in self.forgotten.items()},
        }
        return {key: tables for key, tables in held.items() if tables}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> LedgerContent:
        """The reverse of ``to_json``; keys that older ledgers lack are empty. Raises KeyError, ValueError."""
        return LedgerContent(
            stream=data["stream"],
            batch=data["batch"],
            positions=Offsets.from_json(data["positions"]),
            behind={_source(name): Offsets.from_json(start) for name, start in data["behind"].items()},
            applied={_source(name): Offsets.from_json(start) for name, start in data.get("applied", {}).items()},
            tables={_source(name): path for name, path in data["tables"].items()},
            topic_ids=data.get("topic_ids", {}),
            skipped=Ranges.from_partitions(data.get("skipped", {})),
            heights=heights_from_json(data.get("heights", ())),
            planned=Offsets.from_json(data.get("planned", {})),
            transactions=PassedTransactions(
                data.get("transactions_ms", 0), tuple(data.get("transactions_ended", ())), tuple(data.get("torn", ()))
            ),
            paused={_source(name): since_ms for name, since_ms in data.get("paused", {}).items()},
            stopped={_source(name): Stop(*stop) for name, stop in data.get("stopped", {}).items()},
            resyncs={_source(name): Resync.from_json(resync) for name, resync in data.get("resyncs", {}).items()},
            forgotten={_source(name): asked_ms for name, asked_ms in data.get("forgotten", {}).items()},
        )


def _name(source: SourceTable) -> str:
    return json.dumps([source.database, source.table], ensure_ascii=False)


def _source(name: str) -> SourceTable:
    database, table = json.loads(name)
    return SourceTable(database, table)
