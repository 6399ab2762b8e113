"""The content of a ledger, and the format of its file."""

from __future__ import annotations

import json
from collections import UserDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from binlake.decode.changes import SourceTable
from binlake.position.binlog_height import Heights, heights_from_json, heights_to_json
from binlake.position.held_tables import Resync, Stop
from binlake.position.recorded import NO_TRANSACTIONS, PassedTransactions, truncates_ahead
from binlake.source.offsets import NO_OFFSETS, NO_RANGES, Offsets, Ranges

VERSION = 1
V = TypeVar("V")


class TableTexts(UserDict["SourceTable", V]):
    """Values by table, each kept with its JSON, so that a batch makes that of the tables that it changes, and of no
    others. ``encoded``: a value as JSON can write it."""

    def __init__(self, encoded: Callable[[V], Any], values: Mapping[SourceTable, V]) -> None:
        self._encoded = encoded
        self._texts: dict[SourceTable, str] = {}
        self._tables: frozenset[SourceTable] | None = None
        super().__init__(values)

    def __setitem__(self, table: SourceTable, value: V) -> None:
        if table not in self.data:
            self._tables = None
        super().__setitem__(table, value)
        self._texts[table] = f"{json.dumps(_name(table))}:{_text(self._encoded(value))}"

    def __delitem__(self, table: SourceTable) -> None:
        super().__delitem__(table)
        del self._texts[table]
        self._tables = None

    def tables(self) -> frozenset[SourceTable]:
        """The tables that have a value; the same object until another one gets a value, or loses it."""
        if self._tables is None:
            self._tables = frozenset(self.data)
        return self._tables

    def to_text(self) -> str:
        """The JSON of all values by their tables' names."""
        return f"{{{','.join(self._texts.values())}}}"


def standings(applied: Mapping[SourceTable, Offsets]) -> TableTexts[Offsets]:
    """A stream's positions by table."""
    return TableTexts(Offsets.to_json, applied)


def paths(tables: Mapping[SourceTable, str]) -> TableTexts[str]:
    """The paths of tables below the lake's root."""
    return TableTexts(str, tables)


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
        deletes_unsaid_in: topics whose newest messages do not say which rows they delete.
        nulls_unsaid_in: tables whose newest messages, of Maxwell, leave out columns that are null.
    """

    stream: str
    batch: int = 0
    positions: Offsets = NO_OFFSETS
    behind: dict[SourceTable, Offsets] = field(default_factory=dict)
    applied: TableTexts[Offsets] = field(default_factory=lambda: standings({}))
    tables: TableTexts[str] = field(default_factory=lambda: paths({}))
    topic_ids: dict[str, str] = field(default_factory=dict)
    skipped: Ranges = NO_RANGES
    heights: Heights = field(default_factory=dict)
    planned: Offsets = NO_OFFSETS
    transactions: PassedTransactions = NO_TRANSACTIONS
    paused: dict[SourceTable, int] = field(default_factory=dict)
    stopped: dict[SourceTable, Stop] = field(default_factory=dict)
    resyncs: dict[SourceTable, Resync] = field(default_factory=dict)
    forgotten: dict[SourceTable, int] = field(default_factory=dict)
    deletes_unsaid_in: frozenset[str] = frozenset()
    nulls_unsaid_in: frozenset[SourceTable] = frozenset()

    def to_text(self) -> str:
        """The content as JSON."""
        head = {
            "version": VERSION,
            "stream": self.stream,
            "batch": self.batch,
            "positions": self.positions.to_json(),
            "behind": {_name(table): start.to_json() for table, start in self.behind.items()},
        }
        tables = f'"applied":{self.applied.to_text()},"tables":{self.tables.to_text()}'
        return f"{_text(head)[:-1]},{tables},{_text(self._rest_to_json())[1:]}"

    def _rest_to_json(self) -> dict[str, Any]:
        return {
            "topic_ids": self.topic_ids,
            "skipped": self.skipped.by_partition(),
            "heights": heights_to_json(self.heights),
            "planned": self.planned.to_json(),
            "transactions_ms": self.transactions.ms,
            "transactions_ended": self.transactions.ended,
            "torn": self.transactions.torn,
            **({"truncates_ahead": self.transactions.ahead} if self.transactions.ahead else {}),
            **({"deletes_unsaid_in": sorted(self.deletes_unsaid_in)} if self.deletes_unsaid_in else {}),
            **({"nulls_unsaid_in": sorted(map(_name, self.nulls_unsaid_in))} if self.nulls_unsaid_in else {}),
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
        """The reverse of ``to_text``, decoded; keys that older ledgers lack are empty. Raises KeyError, ValueError."""
        return LedgerContent(
            stream=data["stream"],
            batch=data["batch"],
            positions=Offsets.from_json(data["positions"]),
            behind={_source(name): Offsets.from_json(start) for name, start in data["behind"].items()},
            applied=standings(
                {_source(name): Offsets.from_json(start) for name, start in data.get("applied", {}).items()}
            ),
            tables=paths({_source(name): path for name, path in data["tables"].items()}),
            topic_ids=data.get("topic_ids", {}),
            skipped=Ranges.from_partitions(data.get("skipped", {})),
            heights=heights_from_json(data.get("heights", ())),
            planned=Offsets.from_json(data.get("planned", {})),
            transactions=PassedTransactions(
                data.get("transactions_ms", 0),
                tuple(data.get("transactions_ended", ())),
                tuple(data.get("torn", ())),
                truncates_ahead(data.get("truncates_ahead", ())),
            ),
            paused={_source(name): since_ms for name, since_ms in data.get("paused", {}).items()},
            stopped={_source(name): Stop(*stop) for name, stop in data.get("stopped", {}).items()},
            resyncs={_source(name): Resync.from_json(resync) for name, resync in data.get("resyncs", {}).items()},
            forgotten={_source(name): asked_ms for name, asked_ms in data.get("forgotten", {}).items()},
            deletes_unsaid_in=frozenset(data.get("deletes_unsaid_in", ())),
            nulls_unsaid_in=frozenset(map(_source, data.get("nulls_unsaid_in", ()))),
        )


def _name(source: SourceTable) -> str:
    return json.dumps([source.database, source.table], ensure_ascii=False)


def _text(value: Any) -> str:  # noqa: ANN401 - JSON
    return json.dumps(value, separators=(",", ":"))


def _source(name: str) -> SourceTable:
    database, table = json.loads(name)
    return SourceTable(database, table)
