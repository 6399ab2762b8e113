"""A source table of facts, its events in topic partitions, and the lake table that counts them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from binlake.decode.changes import META_FIELDS, ChangeBatch, Column, Op, SourceTable, TableSchema
from binlake.rows.merging.engines.aggregate import Aggregate
from binlake.rows.merging.engines.heights import NOTHING_COUNTED, FactHeights
from binlake.rows.upsert.engines.facts import route_facts
from binlake.rows.upsert.merge import Place
from binlake.rows.upsert.parcel import Parcel, unpack
from binlake.rows.upsert.place import place_rows
from binlake.rows.upsert.route import AppliedRecords
from binlake.rows.upsert.target import ORDER_FIELD, Target
from binlake.schema.rules.row_places import RowPlaces
from hudilake.format.definition.bucketing import SimpleBuckets
from hudilake.format.definition.merging import STATE_FIELD, Function, Merging
from tests.binlake.rows.merging.engines.rows import Rows

SOURCE = SourceTable("shop", "facts")
COLUMNS = (
    Column("id", "int", pa.int64()),
    Column("user", "text", pa.string()),
    Column("amount", "decimal", pa.decimal128(9, 2)),
    Column("score", "int", pa.int32()),
    Column("note", "text", pa.string()),
)
SCHEMA = TableSchema(SOURCE, COLUMNS, ("id",))
TARGET = Target.new(SOURCE, "facts", ("user",), SimpleBuckets(2))
NAMES = {column.name: column.name for column in COLUMNS}
#: Everything that can be taken back, and everything else.
REVOCABLE: Mapping[str, Function] = {"amount": "sum", "score": "sum", "id": "count", "note": "last_non_null"}
FINAL: Mapping[str, Function] = {"amount": "max", "score": "min", "id": "count", "note": "collect"}

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    """One event at the source: an insert, an update or a delete by the images that it has."""

    order: int
    before: Row | None
    after: Row | None

    @property
    def partition(self) -> int:
        """By the fact's primary key."""
        return int((self.after or self.before or {})["id"] % 2)


@dataclass
class Source:
    """The table at the source: ``rows`` now, and what happened."""

    rng: random.Random
    rows: dict[int, Row] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    order: int = 1 << 32

    def transaction(self, size: int, *, inserts_only: bool = False, one_order: bool = True) -> None:
        """Random statements. ``one_order``: all events of the transaction have one order, as with MariaDB."""
        self.order += 100
        for _ in range(size):
            if not one_order:
                self.order += 1
            known = sorted(self.rows)
            kind = "c" if inserts_only or not known else self.rng.choice("ccuuud")
            key = self.rng.choice(known) if kind in "ud" else self.rng.choice([*range(6), 100 + len(self.events)])
            if kind == "c" and key in self.rows:
                key = 1000 + len(self.events)
            after = None if kind == "d" else self._row(key)
            before = self.rows.get(key)
            self.events.append(Event(self.order, before, after))
            self.rows.pop(key, None)
            if after is not None:
                self.rows[key] = after

    def _row(self, key: int) -> Row:
        pick = self.rng.choice
        amount = pick([None, Decimal("1.50"), Decimal("-2.25"), Decimal("1.50")])
        return {
            "id": key,
            "user": pick("abc"),
            "amount": amount,
            "score": pick([None, 1, 2]),
            "note": pick([None, "x"]),
        }

    def groups(self) -> dict[str, dict[str, Any]]:
        """SELECT user, SUM(amount), SUM(score), COUNT(id) ... GROUP BY user."""
        found: dict[str, list[Row]] = {}
        for row in self.rows.values():
            found.setdefault(row["user"], []).append(row)
        return {
            user: {
                "amount": total([r["amount"] for r in rows]),
                "score": total([r["score"] for r in rows]),
                "id": len(rows),
            }
            for user, rows in found.items()
        }


def total(values: Sequence[Any]) -> Any:  # noqa: ANN401 - a number of any type
    """SUM as in SQL: null of nothing."""
    given = [v for v in values if v is not None]
    return sum(given[1:], given[0]) if given else None


def batch_of(events: Sequence[tuple[int, Event]], partition: int) -> ChangeBatch:
    """Events of one partition with their offsets, as a change batch."""
    rows, before, at = [], [], []
    for n, (offset, event) in enumerate(events):
        meta = (int(Op.UPSERT if event.after else Op.DELETE), event.order, 0, partition, offset, 0, event.order)
        rows.append({**(event.after or event.before or {}), **dict(zip(META_NAMES, meta, strict=True))})
        if event.after is not None and event.before is not None:
            before.append(dict(event.before))
            at.append(n)
    schema = pa.schema([*SCHEMA.arrow(), *META_FIELDS])
    return ChangeBatch(
        SCHEMA,
        "s.shop.facts",
        pa.Table.from_pylist(rows, schema=schema),
        pa.Table.from_pylist(before, schema=SCHEMA.arrow()),
        np.array(at, dtype=np.int64),
    )


META_NAMES = tuple(f.name for f in META_FIELDS)


@dataclass
class Counting:
    """The lake table: rows by file group, and how far they are counted."""

    functions: Mapping[str, Function]
    heights: FactHeights = NOTHING_COUNTED
    groups: dict[Place, Rows] = field(default_factory=dict)

    def commit(self, parts: Mapping[int, Sequence[tuple[int, Event]]], *, dies: bool = False) -> int:
        """One batch: partition -> (offset, event). ``dies`` leaves no trace. Returns the superseded records."""
        by_place: dict[Place, list[Parcel]] = {}
        for partition, events in parts.items():
            if events:
                batch = batch_of(events, partition)
                rows = place_rows(batch, TARGET, NAMES, RowPlaces.incoming(batch.rows))
                for parcel in route_facts(rows, self.functions, AppliedRecords(), -1).parcels:
                    by_place.setdefault((parcel.partition_path, parcel.bucket), []).append(parcel)
        done = []
        for place, parcels in by_place.items():
            events_there = unpack(parcels)
            schema = self._schema(events_there)
            group = self.groups.setdefault(place, Rows(schema))
            merger = Aggregate(Merging("aggregate", (), tuple(self.functions.items())), schema, group, self.heights)
            done.append((group, merger.merge(place, "id", events_there)))
        if not dies:
            for group, merged in done:
                group.write(merged)
            reached = self.heights.merged([m.heights for _, m in done if m.heights is not None])
            self.heights = FactHeights.from_text(reached.to_text())
        return sum(m.superseded for _, m in done)

    def _schema(self, rows: pa.Table) -> pa.Schema:
        values = [f for f in rows.schema if f.name != "_hoodie_record_key" and not f.name.startswith("__")]
        return pa.schema([*values, (ORDER_FIELD, pa.int64()), (STATE_FIELD, pa.binary())])

    def values(self, *names: str) -> dict[str, dict[str, Any]]:
        """user -> these columns."""
        rows = {key: row for group in self.groups.values() for key, row in group.values().items()}
        return {key: {name: row[name] for name in names} for key, row in rows.items()}


def with_order(event: Event, order: int) -> Event:
    """The event at another order."""
    return replace(event, order=order)
