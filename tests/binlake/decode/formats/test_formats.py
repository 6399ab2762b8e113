"""Debezium, Canal and Maxwell of the same workload give the same tables, cell by cell, but for what a format loses."""

from __future__ import annotations

import dataclasses
import json
import pickle
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from binlake.decode.changes import ControlKind, DecodedRecords, RawRecords, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions, EventFormat
from binlake.decode.schemas.schemas import NoSchemas
from tests.binlake.decode import recordings
from tests.binlake.decode.formats import format_recordings as formats
from tests.binlake.decode.recordings import as_server_sends, replay
from tests.binlake.hbase import recordings as hbase
from tests.binlake.hbase.formats.bigtable_changes import CHANGES

ALL = 10**9
#: Cells that no row event carries (KNOWN.md): what only DDL could fill.
ONLY_BY_DDL = {
    "shop": {
        ("customers", "tier"): 111,
        ("customers", "score"): 245,
        ("customers", "prefs"): 245,
        ("orders", "remark"): 135,
    },
    "bank": {},
}
#: Recording, messages a chunk, and whether the format is declared.
WAYS = [("shop", ALL, False), ("shop", 97, True), ("bank", ALL, True), ("bank", 997, False)]
DAY_US = 86_400_000_000


@pytest.fixture(autouse=True, params=["UTC"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The machine's time zone."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.first(2)
@pytest.mark.parametrize(("database", "size", "declared"), WAYS)
def test_canal_equals_the_source(database: str, size: int, declared: bool) -> None:
    form = EventFormat.CANAL if declared else EventFormat.AUTO
    found = formats.decode_recording(database, "canal", size, format=form)
    assert not found.quarantined
    differ = formats.differences(found, database)
    assert differ.absent == ONLY_BY_DDL[database]
    assert differ.cells == {}
    assert differ.rows == {}


@pytest.mark.first(1)
@pytest.mark.parametrize(("database", "size", "declared"), WAYS)
def test_maxwell_equals_the_source(database: str, size: int, declared: bool) -> None:
    form = EventFormat.MAXWELL if declared else EventFormat.AUTO
    found = formats.decode_recording(database, "maxwell", size, format=form)
    assert not found.quarantined
    differ = formats.differences(found, database)
    assert differ.absent == ONLY_BY_DDL[database]
    assert differ.rows == ({"scratch": 5} if database == "shop" else {}), "Maxwell writes nothing for TRUNCATE"
    assert differ.cells.keys() == ({("orders", "pick_time")} if database == "shop" else set())
    for true, ours in differ.cells.get(("orders", "pick_time"), []):
        assert isinstance(true, str)
        assert isinstance(ours, int)
        meant = _microseconds(true)
        assert not 0 <= meant < DAY_US, "only TIME outside of a day is wrapped, by Maxwell"
        assert (meant - ours) % DAY_US == 0 or meant < 0


def _microseconds(clock: str) -> int:
    hours, minutes, seconds = clock.lstrip("-").split(":")
    whole = int(hours) * 3_600_000_000 + int(minutes) * 60_000_000 + round(float(seconds) * 1_000_000)
    return -whole if clock.startswith("-") else whole


@pytest.mark.first(2)
@pytest.mark.parametrize("form", ["canal", "maxwell"])
@pytest.mark.parametrize("size", [ALL, 13])
def test_the_table_without_a_key_as_a_multiset(form: str, size: int) -> None:
    found = formats.decode_recording("shop", form, size, before_of="all")
    expected, kinds = formats.truth("shop")["audit_log"]
    by_hand = Counter(tuple(sorted(row.items())) for row in expected)
    replayed: Counter[Any] = Counter()
    for batch in found.changes:
        if batch.schema.source.table == "audit_log":
            assert not batch.schema.key
            sides = [(row, 1 - 2 * row["__op"]) for row in batch.rows.to_pylist()]
            sides += [(row, -1) for row in (batch.before.to_pylist() if batch.before is not None else [])]
            for row, sign in sides:
                replayed[tuple(sorted((n, as_server_sends(row[n], kinds[n])) for n in kinds))] += sign
    assert +replayed == by_hand
    assert not -replayed


def test_the_three_formats_give_the_same_types_and_rows() -> None:
    """Debezium was recorded in another run of the workload: all but the clock's columns must be alike."""
    by_clock = {"updated", "created", "at", "paid_ts"}
    tables: dict[str, dict[str, Any]] = {}
    schemas: dict[str, dict[SourceTable, Any]] = {}
    debezium = recordings.decode_all(
        "shop", "schema", recordings.history_of("shop", "schema"), recordings.options_of("schema"), ALL
    )
    for name, found in {
        "debezium": debezium,
        "canal": formats.with_moves(formats.decode_recording("shop", "canal", ALL)),
        "maxwell": formats.with_moves(formats.decode_recording("shop", "maxwell", ALL)),
    }.items():
        rows, _ = replay(found)
        for table in ("stock", "coupons", "order_items", "customers", "orders"):
            kept = [
                sorted((k, repr(v)) for k, v in row.items() if k not in by_clock | {"pick_time"})
                for row in rows[SourceTable("shop", table)]
            ]
            tables.setdefault(table, {})[name] = sorted(kept)
        schemas[name] = {b.schema.source: (b.schema.key, b.schema.arrow()) for b in found.changes}
    for table, of in tables.items():
        assert of["canal"] == of["debezium"], table
        assert of["maxwell"] == of["debezium"], table
    for source in (SourceTable("shop", t) for t in ("stock", "coupons", "order_items", "customers", "orders")):
        assert schemas["canal"][source] == schemas["debezium"][source]
        assert schemas["maxwell"][source] == schemas["debezium"][source]


@pytest.mark.parametrize("form", ["canal", "maxwell"])
def test_one_changed_cell_is_seen(form: str) -> None:
    """The control: the comparison fails when one cell of one message is another."""
    whole = formats.messages("shop", form)
    last = max(
        i for i, v in enumerate(whole.values) if b'"table":"stock"' in (v or b"") and b"update" in (v or b"").lower()
    )
    message = json.loads(whole.values[last] or b"")
    row = message["data"][0] if form == "canal" else message["data"]
    row["qty"] = str(int(row["qty"]) + 1) if form == "canal" else row["qty"] + 1
    values = [*whole.values[:last], json.dumps(message).encode(), *whole.values[last + 1 :]]
    options = DecodeOptions()
    schemas = formats.history("shop", options) if form == "maxwell" else NoSchemas()
    found = decode(dataclasses.replace(whole, values=values), schemas, options)
    differ = formats.differences(found, "shop")
    assert [len(pairs) for place, pairs in differ.cells.items() if place == ("stock", "qty")] == [1]


@pytest.mark.parametrize("form", ["canal", "maxwell"])
@pytest.mark.parametrize("database", ["shop", "bank"])
def test_every_message_is_in_exactly_one_place(database: str, form: str) -> None:
    found = formats.decode_recording(database, form, ALL)
    offsets = {o for batch in found.changes for o in batch.rows["__offset"].to_pylist()}
    controls = {control.offset for control in found.controls}
    assert not offsets & controls
    assert len(offsets) + len(controls) + sum(found.filtered.values()) == len(formats.messages(database, form))


def test_the_bank_never_loses_a_cent() -> None:
    for form in ("canal", "maxwell"):
        rows, _ = replay(formats.with_moves(formats.decode_recording("bank", form, ALL)))
        assert sum(row["balance"] for row in rows[SourceTable("bank", "accounts")]) == 1_000_000


def test_statements_are_controls() -> None:
    canal = formats.decode_recording("shop", "canal", ALL)
    (truncate,) = [c for c in canal.controls if c.kind is ControlKind.TRUNCATE]
    assert truncate.source == SourceTable("shop", "scratch")
    assert truncate.order == truncate.offset
    for form in ("canal", "maxwell"):
        found = formats.decode_recording("shop", form, ALL)
        texts = [c.text for c in found.controls if c.kind is ControlKind.DDL]
        assert "ALTER TABLE customers ADD COLUMN tier VARCHAR(12) NOT NULL DEFAULT 'basic' AFTER vip" in texts
        assert len([text for text in texts if "DATABASE" not in text]) == 14


@pytest.mark.first(3)
@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York"], indirect=True)
@pytest.mark.parametrize("form", ["canal", "maxwell"])
def test_the_zone_of_the_machine_changes_nothing(form: str, zone: str) -> None:
    assert time.tzname != ("UTC", "UTC"), "the zone took hold"
    differ = formats.differences(formats.decode_recording("shop", form, ALL), "shop")
    assert differ.cells.keys() <= {("orders", "pick_time")}


def parts() -> list[RawRecords]:
    """One recording of each format that is told apart, and Debezium's statements."""
    return [
        formats.messages("shop", "canal"),
        formats.messages("shop", "maxwell"),
        next(iter(recordings.topics("shop", "schema")["shop_schema.shop.orders"].values())),
        next(iter(recordings.topics("shop", "schema")["shop_schema"].values())),
        hbase.topic("shop:counters", "wal")[0],
        recordings.records([None] * len(CHANGES), [json.dumps(one).encode() for one in CHANGES]),
    ]


def mixed(first: int = 0) -> RawRecords:
    """All of them in one partition, in turn, beginning with one of them."""
    turned = parts()[first:] + parts()[:first]
    order = [(i, part) for i in range(max(map(len, turned))) for part in turned if i < len(part)]
    return recordings.records([p.keys[i] for i, p in order], [p.values[i] for i, p in order], topic="mixed")


def row_counts(*found: DecodedRecords) -> Counter[str]:
    return Counter(b.schema.source.table for d in found for b in d.changes for _ in range(b.rows.num_rows))


@pytest.mark.first(1)
@pytest.mark.parametrize("first", range(6))
def test_formats_in_one_partition_are_told_apart(first: int) -> None:
    whole, schemas = mixed(first), formats.history("shop", DecodeOptions())
    options = pickle.loads(pickle.dumps(DecodeOptions(before_of="all")))
    found = decode(whole, pickle.loads(pickle.dumps(schemas)), options)
    assert Counter(q.reason for q in found.quarantined) == {}
    assert row_counts(found) == row_counts(*(decode(part, schemas, options) for part in parts()))
    offsets = {o for b in found.changes for o in b.rows["__offset"].to_pylist()} | {c.offset for c in found.controls}
    assert len(offsets) + sum(found.filtered.values()) == len(whole)


@pytest.mark.first(2)
@pytest.mark.parametrize(
    "form", [EventFormat.DEBEZIUM, EventFormat.CANAL, EventFormat.MAXWELL, EventFormat.HBASE_WAL, EventFormat.BIGTABLE]
)
def test_a_declared_format_takes_no_other(form: EventFormat) -> None:
    whole = mixed()
    found = decode(whole, formats.history("shop", DecodeOptions()), DecodeOptions(format=form))
    assert len(found.quarantined) > 1_000
    assert {q.reason for q in found.quarantined} <= {"unknown_message", "bad_value", "unknown_op", "unknown_column"}
    offsets = {o for b in found.changes for o in b.rows["__offset"].to_pylist()} | {c.offset for c in found.controls}
    assert len(offsets) + sum(found.filtered.values()) + len(found.quarantined) == len(whole)
