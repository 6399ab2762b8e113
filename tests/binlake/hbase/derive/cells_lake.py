"""A lake with a table of cells that any writer changes, and its wide table; what the wide table must hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from binlake.decode.cells import CELL_KEY, CELL_SCHEMA, CellKind
from binlake.decode.changes import META_FIELDS, ChangeBatch, Op, SourceTable
from binlake.hbase.derive.cell_store import store_of
from binlake.hbase.derive.derivation import Deriver
from binlake.hbase.derive.pairs import DerivedPair, derived_pairs
from binlake.hbase.derive.wide_batch import accepted, change_batch
from binlake.hbase.formats.cell_rows import table_of_cells
from binlake.hbase.rules.rules import Moment, visible
from binlake.hbase.rules.wide import wide_rows, wide_schema
from binlake.rows.tasks.plan import TaskTableReport
from binlake.rows.upsert.prepare import TableFacts, prepare
from binlake.settings import Settings
from binlake.source.offsets import NO_RANGES
from binlake.tables.lake import Lake, locking
from binlake.tables.quarantine import QuarantineTable
from binlake.tables.table_commit import TableInput, write_and_commit
from hudilake.clock import now_ms
from hudilake.read.slice import read_table
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream.topic_log import services

CELLS, WIDE = SourceTable("shop", "orders_cells"), SourceTable("shop", "orders")
COLUMNS = {"order_id": ":key", "user_id": "d:user_id#b long", "status": "d:status#b utf8", "attributes": "m:#b utf8"}
#: A cell: row, family, qualifier, timestamp, kind, value.
Cell = tuple[str, str, str, int, str, bytes | None]


def put(row: str, column: str, timestamp: int, value: bytes | str) -> Cell:
    """A value; a column is ``family:qualifier``."""
    family, _, qualifier = column.partition(":")
    return row, family, qualifier, timestamp, CellKind.PUT, value.encode() if isinstance(value, str) else value


def delete(row: str, column: str, timestamp: int) -> Cell:
    """A marker of all versions of a column, or of a family, up to a timestamp."""
    family, _, qualifier = column.partition(":")
    kind = CellKind.DELETE_COLUMN if qualifier else CellKind.DELETE_FAMILY
    return row, family, qualifier, timestamp, kind, None


def number(value: int) -> bytes:
    """As ``Bytes.toBytes(long)``."""
    return value.to_bytes(8, "big", signed=True)


def document(
    uri: str,
    columns: Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    lock: str = "process",
    **store: Any,  # noqa: ANN401 - any YAML value
) -> dict[str, Any]:
    """Settings of a stream of one store's table."""
    rules = {"buckets": 2, "compaction": {"mode": "off"}, **(defaults or {})}
    wide = {"columns": dict(columns or COLUMNS), **store.pop("wide", {})}
    return {
        "name": "shop",
        "lake": {"uri": uri, "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": ["hbase.shop.orders"]},
        "tables": {"defaults": rules, "cells": [{"source": "shop.orders", "wide": wide, **store}]},
        "locking": {"lock": lock},
    }


@dataclass
class CellsLake:
    """The lake, through one process's eyes. ``sequence``: the last sequence id of its writers."""

    settings: Settings
    root: Storage
    sequence: int = 0
    written: dict[tuple[Any, ...], tuple[int, bytes | None]] = field(default_factory=dict)

    @staticmethod
    def at(uri: str, root: Storage | None = None, **said: Any) -> CellsLake:  # noqa: ANN401 - any YAML value
        """A lake at a place; ``said`` as for ``document``."""
        settings = Settings.parse(json.dumps(document(uri, **said)))
        return CellsLake(settings, root or open_storage(uri, {"fsync": "false"}))

    def __post_init__(self) -> None:
        self.pool = ThreadPoolExecutor(2)
        self.reopen()

    def reopen(self) -> None:
        """A new process: nothing is open."""
        self.lake = Lake(self.root, locking(self.settings.locking, "tests"))
        self.services = services()
        quarantine = QuarantineTable(self.settings, self.lake, self.services)
        self.deriver = Deriver(
            self.settings.name, self.lake, self.services, quarantine, self.pool, store_of(self.settings)
        )

    def change(self, **said: Any) -> None:  # noqa: ANN401 - any YAML value
        """A new process with other settings."""
        self.settings = Settings.parse(json.dumps(document(self.settings.lake.uri, **said)))
        self.reopen()

    @property
    def pair(self) -> DerivedPair:
        """The wide table."""
        (pair,) = derived_pairs(self.settings)
        return pair

    def write(self, *cells: Cell, stream: str = "shop") -> None:
        """Commit cells to the table of cells, as the stream or another writer does, and derive nothing."""
        self.sequence += 1
        self._commit(cells_batch(cells, self.sequence), stream)
        for *key, value in cells:
            self.written[tuple(key)] = (self.sequence, value)

    def _commit(self, batch: ChangeBatch, stream: str) -> None:
        rules = self.pair.cells_rules
        known = self.lake.get(rules)
        facts = TableFacts() if known is None else TableFacts(bucketing=known.rows.own_bucketing)
        found = prepare(batch, rules, None, facts).accepted
        assert found is not None
        table = self.lake.get_or_create(rules, found.target, found.columns)
        table.hudi.refresh()
        report = TaskTableReport(found.schema, found.target, found.columns, origins={CELLS}, counts=found.counts)
        table_input = TableInput(report, NO_RANGES, found.parcels)
        write_and_commit(table, table_input, stream, 0, self.pool, self.services)

    def remove(self, *keys: tuple[Any, ...]) -> None:
        """Delete cells, as a writer of another kind may."""
        self.sequence += 1
        batch = cells_batch([(*key, None) for key in keys], self.sequence)
        ops = pa.array(np.full(len(keys), int(Op.DELETE)), pa.int8())
        at = batch.rows.column_names.index("__op")
        batch = replace(batch, rows=batch.rows.set_column(at, batch.rows.schema.field(at), ops))
        self._commit(batch, "shop")
        for key in keys:
            del self.written[key]

    def spoil(self, upserts: Iterable[Mapping[str, Any]] = (), gone: Iterable[str] = ()) -> None:
        """Write wrong rows to the wide table, as nobody should."""
        schema = wide_schema(self.pair.declared)
        rows = [{name: row.get(name) for name in schema.names} for row in upserts]
        table = self.lake.get(self.pair.wide_rules)
        assert table is not None
        note = table.recorded.derived
        assert note is not None
        keys = pa.array(list(gone), pa.string())
        batch = change_batch(self.pair, pa.Table.from_pylist(rows, schema), keys, note.order)
        found = accepted(batch, self.pair, table)
        assert found is not None
        table.hudi.refresh()
        report = TaskTableReport(found.schema, found.target, found.columns, counts=found.counts)
        write_and_commit(table, TableInput(report, NO_RANGES, found.parcels), "x", 0, self.pool, self.services)

    def quarantined(self) -> list[tuple[str, str, bytes, str]]:
        """(topic, row, value, reason) of what waits."""
        names = ["topic", "key", "value", "reason"]
        parts = read_table(self.root.sub(self.settings.quarantine_path), names)
        rows = [tuple(row[name] for name in names) for part in parts for row in part.to_pylist()]
        return sorted((topic, key.decode(), value, reason) for topic, key, value, reason in rows)

    def hudi(self, table: SourceTable) -> HudiTable:
        """A table, opened anew."""
        return HudiTable.open(self.root.sub(self.settings.table_rules(table).path))

    def rows(self) -> list[dict[str, Any]]:
        """The wide rows, by their key."""
        names = [column.name for column in self.pair.declared.columns]
        parts = read_table(self.root.sub(self.pair.wide_rules.path), names)
        return sorted((row for part in parts for row in part.to_pylist()), key=lambda row: str(row["order_id"]))

    def wanted(self, at_ms: int | None = None) -> list[dict[str, Any]]:
        """What the rules make of all cells ever written."""
        cells = cells_table(self.written)
        shown = cells.filter(visible(cells, self.pair.kept, Moment(at_ms or now_ms())))
        rows = pa.array(sorted({row for row, *_ in self.written}), pa.string())
        found = wide_rows(shown, rows, self.pair.declared).upserts.to_pylist()
        return sorted(found, key=lambda row: str(row["order_id"]))


def cells_table(written: Mapping[tuple[Any, ...], tuple[int, bytes | None]]) -> pa.Table:
    """Cells by their keys, with the sequence id and the value of each, as stored."""
    rows = [dict(zip(CELL_KEY, key, strict=True)) | {"value": value} for key, (_, value) in written.items()]
    table = pa.Table.from_pylist(rows, schema=CELL_SCHEMA)
    return table.append_column("_binlake_order", pa.array([order for order, _ in written.values()], pa.int64()))


def cells_batch(cells: Iterable[Cell], sequence: int) -> ChangeBatch:
    """Cells of one WAL entry as a change batch."""
    rows = [dict(zip((*CELL_KEY, "value"), cell, strict=True)) for cell in cells]
    table = pa.Table.from_pylist(rows, schema=CELL_SCHEMA)
    numbers = {"__op": int(Op.UPSERT), "__order": sequence, "__place": sequence, "__offset": sequence}
    for extra in META_FIELDS:
        values = np.full(len(rows), numbers.get(extra.name, 0))
        values = np.arange(len(rows)) if extra.name == "__row" else values
        table = table.append_column(extra, pa.array(values, extra.type))
    return ChangeBatch(table_of_cells(CELLS), "hbase.shop.orders", table)
