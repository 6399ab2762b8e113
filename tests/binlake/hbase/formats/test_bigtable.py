"""Bigtable's change records in the JSON of Google's Dataflow template, field by field as its schema documents them."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from binlake.decode.changes import DecodedRecords, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.options import BigtableText, DecodeOptions, EventFormat
from binlake.decode.schemas.schemas import DeclaredSchemas
from tests.binlake.decode.recordings import records
from tests.binlake.hbase.cells_world import cells_of
from tests.binlake.hbase.formats.bigtable_changes import CHANGES, COMMIT_US, EVER, change


def read(
    *messages: dict[str, Any] | bytes | None,
    text: tuple[BigtableText, ...] = (),
    form: EventFormat = EventFormat.BIGTABLE,
) -> DecodedRecords:
    values = [m if m is None or isinstance(m, bytes) else json.dumps(m).encode() for m in messages]
    options = DecodeOptions(format=EventFormat.BIGTABLE, bigtable_text=frozenset(text))
    return decode(records([None] * len(values), values), DeclaredSchemas({}), options)


def test_modifications_are_cells() -> None:
    found = read(*CHANGES)
    assert found.quarantined == []
    (batch,) = found.changes
    assert batch.schema.source == SourceTable("shop", "orders")
    cells = [
        (c.place.row, c.place.family, c.place.qualifier, c.place.timestamp_ms, c.kind) for c in cells_of(batch.rows)
    ]
    assert cells == [
        (b"r\xff", b"cf", b"q", 7000, "Put"),
        (b"r\xff", b"cf", b"q", 8000, "DeleteRange:5000"),
        (b"r\xff", b"cf", b"q", EVER, "DeleteRange:0"),
        (b"r\xff", b"cf", b"", EVER, "DeleteFamily"),
        (b"r\xff", b"cf", b"", 0, "Put"),
    ]
    assert batch.rows.column("value").to_pylist() == [b"v", None, None, None, b""]
    assert set(batch.rows.column("written").to_pylist()) == {
        dt.datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=dt.UTC)
    }
    assert set(batch.rows.column("__source_ms").to_pylist()) == {COMMIT_US // 1000}


def test_the_order_is_commit_time_then_tie_breaker_then_deletes_before_sets() -> None:
    later = str(COMMIT_US + 1)
    steps = [
        change("DELETE_FAMILY"),
        change(),
        change("DELETE_CELLS", tieBreaker=4),
        change(tieBreaker=5000),
        change("DELETE_FAMILY", commitTimestamp=later, tieBreaker=-1),
        change(commitTimestamp=later, tieBreaker=0),
    ]
    (batch,) = read(*steps).changes
    orders = batch.rows.column("__order").to_pylist()
    assert orders == sorted(set(orders))
    assert orders[0] == COMMIT_US << 11 | 3 << 1


def test_members_may_be_text() -> None:
    message = change(rowKey="rö", column="q", value="v\n")
    (batch,) = read(message, text=("rowKey", "column", "value")).changes
    (cell,) = cells_of(batch.rows)
    assert (cell.place.row, cell.place.qualifier, cell.value) == ("rö".encode(), b"q", b"v\n")
    found = read(change(rowKey="r\ufffd", column="q", value="v"), text=("rowKey", "column", "value"))
    assert [q.detail for q in found.quarantined] == [
        "rowKey lost bytes when the template made text of it; let the template write base64"
    ]


def test_numbers_may_be_numbers() -> None:
    numbers = change(commitTimestamp=COMMIT_US, timestamp=7000)
    found = read(change(), numbers, change("DELETE_CELLS", commitTimestamp=COMMIT_US, timestampTo=9))
    assert found.quarantined == []
    assert sorted(t for batch in found.changes for t in batch.rows.column("timestamp").to_pylist()) == [9, 7000, 7000]


def test_tables_of_one_topic_are_apart() -> None:
    found = read(change(), change(sourceTable="a.b"), change(sourceInstance="other"), None, b"null")
    assert sorted(str(batch.schema.source) for batch in found.changes) == ["other.orders", "shop.a.b", "shop.orders"]
    assert found.filtered == {(None, "tombstone"): 2}


def without(name: str) -> dict[str, Any]:
    return {member: value for member, value in change().items() if member != name}


BAD: dict[str, list[dict[str, Any] | bytes]] = {
    "malformed_json": [b"{", b'{"rowKey": 1} {}', b'{"rowKey": "AA=="}, "x": {"a": 1}'],
    "duplicate_key": [json.dumps(change()).replace('"isGC"', '"rowKey": "", "isGC"').encode()],
    "unknown_message": [
        b"5",
        b"[]",
        b"{}",
        *(without(name) for name in ("rowKey", "modType", "columnFamily", "commitTimestamp", "tieBreaker")),
        *(without(name) for name in ("sourceInstance", "sourceTable", "column", "timestamp", "value")),
        change("DELETE_CELLS", column=None),
        *(change(**{name: text}) for name in ("sourceInstance", "sourceTable") for text in ("", "a\0b")),
    ],
    "unknown_op": [change(modType="UNKNOWN")],
    "missing_key": [change(rowKey=""), change(columnFamily="")],
    "order_out_of_range": [change(commitTimestamp="-1"), change(commitTimestamp=str(1 << 52))],
    "bad_value": [
        change(rowKey="x"),
        change(value="=AAA"),
        change(timestamp="-1"),
        change(timestamp="1.5"),
        change(timestamp={"long": 5}),
        change("DELETE_CELLS", timestampFrom="-5"),
        change(columnFamily="a:b"),
    ],
}


@pytest.mark.parametrize(("reason", "message"), [(reason, one) for reason, many in BAD.items() for one in many])
def test_a_bad_message_is_quarantined_alone(reason: str, message: dict[str, Any] | bytes) -> None:
    found = read(change(), message, change())
    assert [(q.offset, q.reason) for q in found.quarantined] == [(1, reason)]
    assert sum(len(batch.rows) for batch in found.changes) == 2
