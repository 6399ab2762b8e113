"""WAL entries of HBase as JSON: good ones become cells, a bad one is quarantined whole, with its reason."""

from __future__ import annotations

import base64
import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.cells import CELL_KEY, CELL_SCHEMA
from binlake.decode.changes import DecodedRecords, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions, EventFormat
from binlake.decode.schemas.schemas import DeclaredSchemas
from tests.binlake.decode.recordings import records
from tests.binlake.hbase.cells_world import cells_of, wal_entry
from tests.binlake.hbase.recordings import CellPlace, RawCell
from tests.binlake.hbase.visibility import edits

ORDERS = SourceTable("shop", "orders")


def b64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def put(row: bytes = b"r", value: bytes = b"v", **more: str | float | None) -> dict[str, Any]:
    cell = {
        "row": b64(row),
        "family": b64(b"d"),
        "qualifier": b64(b"q"),
        "timeStamp": 7,
        "type": "Put",
        "value": b64(value),
    }
    return {**cell, **more}


def read(values: list[bytes | None], epoch: int = 0) -> DecodedRecords:
    return decode(
        records([None] * len(values), values),
        DeclaredSchemas({}),
        DecodeOptions(format=EventFormat.HBASE_WAL, epoch=epoch),
    )


def test_an_entry_has_cells_of_many_rows() -> None:
    cells = [
        put(b"a"),
        put(b"b\x00", b""),
        put(b"a", type="DeleteColumn"),
        put(b"a", type="DeleteFamily", qualifier=""),
    ]
    (batch,) = read([wal_entry(cells, sequence=9, written=1_000)]).changes
    assert batch.schema.source == ORDERS
    assert (batch.schema.key, batch.schema.arrow().names) == (CELL_KEY, CELL_SCHEMA.names)
    assert cells_of(batch.rows) == [
        RawCell(CellPlace(b"a", b"d", b"q", 7), "Put", b"v"),
        RawCell(CellPlace(b"b\x00", b"d", b"q", 7), "Put", b""),
        RawCell(CellPlace(b"a", b"d", b"q", 7), "DeleteColumn", b""),
        RawCell(CellPlace(b"a", b"d", b"", 7), "DeleteFamily", b""),
    ]
    assert batch.rows.column("value").to_pylist() == [b"v", b"", None, None]
    assert batch.rows.column("__order").to_pylist() == [9] * 4
    assert batch.rows.column("__row").to_pylist() == [0, 1, 2, 3]
    assert batch.rows.column("written").to_pylist() == [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)] * 4


def test_tables_of_one_topic_are_apart() -> None:
    found = read([wal_entry([put()], table=name) for name in ("shop:orders", "orders", "shop:orders", "a.b:c")])
    assert {str(batch.schema.source): len(batch.rows) for batch in found.changes} == {
        "shop.orders": 2,
        "default.orders": 1,
        "a.b.c": 1,
    }


def test_an_epoch_stands_above_the_sequence_id() -> None:
    (batch,) = read([wal_entry([put()], sequence=5)], epoch=3).changes
    assert batch.rows.column("__order").to_pylist() == [(3 << 52) + 5]


BAD: dict[str, list[bytes]] = {
    "malformed_json": [b'{"key":', b'{"key": 1} {}'],
    "invalid_utf8": [wal_entry([put()]).replace(b"shop:", b"sh\xffp:")],
    "too_deep": [b'{"a":' * 100 + b"1" + b"}" * 100],
    "duplicate_key": [
        wal_entry([put()]).replace(b'"tablename"', b'"sequenceId": 2, "tablename"'),
        wal_entry([put()]).replace(b'"row"', b'"row": "", "row"'),
    ],
    "unknown_message": [b"5", b"{}", b'{"key": {}, "edit": {}}', wal_entry(None), wal_entry([None])]
    + [
        wal_entry([put(), put() | {name: None}])
        for name in ("row", "family", "qualifier", "timeStamp", "type", "value")
    ],
    "missing_key": [wal_entry([put(row=b"")]), wal_entry([put(family="")])],
    "no_position": [wal_entry([put()], sequence=None), wal_entry([put()]).replace(b"sequenceId", b"sequence")],
    "order_out_of_range": [wal_entry([put()], sequence=-1), wal_entry([put()], sequence=1 << 52)],
    "unknown_table": [wal_entry([put()], table=name) for name in ("", "a:", ":b", "a:b:c")],
    "unknown_op": [wal_entry([put(), put(type="Minimum")]), wal_entry([put(type="DeleteRange")])],
    "bad_value": [
        wal_entry({}),
        wal_entry([5]),
        wal_entry("x"),
        *(wal_entry([put(timeStamp=at)]) for at in (-1, 1.5, (1 << 63) - 1, 1 << 63, "5")),
        *(
            wal_entry([put() | {name: text}])
            for name in ("row", "family", "value")
            for text in ("A", "AB=C", "A===", "é===")
        ),
        *(wal_entry([put(family=b64(name))]) for name in (b"\xff", b"a:b")),
        wal_entry([put(type="DeleteFamily")]),
        wal_entry([put()], written=-1),
        wal_entry([put()], written=1 << 60),
    ],
}


@pytest.mark.parametrize(("reason", "value"), [(reason, value) for reason, values in BAD.items() for value in values])
def test_a_bad_entry_is_quarantined_alone(reason: str, value: bytes) -> None:
    good = wal_entry([put()])
    found = read([good, value, good])
    assert [(q.offset, q.reason) for q in found.quarantined] == [(1, reason)]
    assert sum(len(batch.rows) for batch in found.changes) == 2


def test_notes_of_hbase_itself_are_no_cells() -> None:
    """Flushes and compactions are in the WAL as cells of a family of their own."""
    note = put(b"region", family=b64(b"METAFAMILY"), qualifier=b64(b"HBASE::FLUSH"))
    found = read([wal_entry([]), wal_entry([note]), wal_entry([note, put()]), None])
    assert found.filtered == {(ORDERS, "no_cells"): 2, (None, "tombstone"): 1}
    assert found.quarantined == []
    assert [batch.rows.column("__offset").to_pylist() for batch in found.changes] == [[2]]


def test_a_bulk_load_is_not_passed_over() -> None:
    note = put(b"region", family=b64(b"METAFAMILY"), qualifier=b64(b"HBASE::BULK_LOAD"))
    found = read([wal_entry([note])])
    assert [(q.reason, q.detail) for q in found.quarantined] == [
        ("unknown_message", "files were added to the table by a bulk load; no event has their cells")
    ]


CELLS = st.lists(
    st.builds(
        put,
        row=st.binary(min_size=1, max_size=4),
        value=st.binary(max_size=5),
        timeStamp=st.integers(0, (1 << 63) - 2),
        qualifier=st.binary(max_size=3).map(b64),
        type=st.sampled_from(["Put", "Delete", "DeleteColumn"]),
        extra=st.none() | st.integers(),
    ),
    min_size=1,
    max_size=4,
)


@given(st.lists(st.tuples(CELLS, st.integers(0, 1 << 51)), max_size=6))
def test_cells_are_those_of_the_messages(entries: list[tuple[list[dict[str, Any]], int]]) -> None:
    """As a plain reading of the same messages."""
    topic = records([None] * len(entries), [wal_entry(cells, sequence) for cells, sequence in entries])
    told = list(edits(topic))
    found = read(topic.values)
    assert found.quarantined == []
    rows = pa.concat_tables([batch.rows for batch in found.changes]) if found.changes else CELL_SCHEMA.empty_table()
    assert [cell.place for cell in cells_of(rows)] == [edit.place for edit in told]
    if told:
        orders = zip(rows.column("__order").to_pylist(), rows.column("__row").to_pylist(), strict=True)
        assert list(orders) == [edit.order for edit in told]
        markers = pc.not_equal(rows.column("kind"), "Put")
        assert rows.column("value").is_null().equals(markers)


def test_many_bad_entries_among_many() -> None:
    good, bad = wal_entry([put()]), wal_entry([put(timeStamp=-1)])
    values: list[bytes | None] = [bad if i % 7 == 3 else good for i in range(400)]
    found = read(values)
    assert [q.offset for q in found.quarantined] == [i for i in range(400) if i % 7 == 3]
    offsets = np.concatenate([batch.rows.column("__offset").to_numpy() for batch in found.changes])
    assert sorted(offsets.tolist()) == [i for i in range(400) if i % 7 != 3]
