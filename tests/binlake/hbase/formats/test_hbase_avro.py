"""Events of HBase's Kafka proxy: read as Avro reads them; a bad message is quarantined alone."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.changes import Decoded, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions, Format
from binlake.decode.schemas.schemas import DeclaredSchemas
from binlake.hbase.formats.hbase_avro import FIELDS, read_events
from tests.binlake.decode.recordings import records
from tests.binlake.hbase.cells_world import cells_of
from tests.binlake.hbase.recordings import PROXY_TABLES, CellPlace, RawCell, proxy_topic

#: The fields as hbase-connectors declares them.
SCHEMA = fastavro.parse_schema(
    {
        "namespace": "org.apache.hadoop.hbase.kafka",
        "type": "record",
        "name": "HBaseKafkaEvent",
        "fields": [
            {"name": name, "type": kind}
            for name, kind in [
                ("key", "bytes"),
                ("timestamp", "long"),
                ("delete", "boolean"),
                ("value", "bytes"),
                ("qualifier", "bytes"),
                ("family", "bytes"),
                ("table", "bytes"),
            ]
        ],
    }
)
EVENT: dict[str, Any] = {
    "key": b"r",
    "timestamp": 7,
    "delete": False,
    "value": b"v",
    "qualifier": b"q",
    "family": b"d",
    "table": b"shop:orders",
}


def event(**fields: Any) -> bytes:  # noqa: ANN401 - of the schema
    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMA, EVENT | fields)
    return out.getvalue()


def read(values: list[bytes | None], epoch: int = 0) -> Decoded:
    options = DecodeOptions(format=Format.HBASE_AVRO, epoch=epoch)
    return decode(records([None] * len(values), values), DeclaredSchemas({}), options)


EVENTS = st.fixed_dictionaries(
    {
        **dict.fromkeys(FIELDS, st.binary(max_size=5) | st.binary(min_size=60, max_size=140)),
        "timestamp": st.integers(-(1 << 63), (1 << 63) - 1),
        "delete": st.booleans(),
    }
)


@given(st.lists(EVENTS, max_size=8))
def test_events_are_read_as_avro_reads_them(given_: list[dict[str, Any]]) -> None:
    found = read_events([event(**fields) for fields in given_])
    assert {name: found.fields[name].to_pylist() for name in FIELDS} == {
        name: [fields[name] for fields in given_] for name in FIELDS
    }
    assert found.timestamps.tolist() == [fields["timestamp"] for fields in given_]
    assert found.deletes.tolist() == [fields["delete"] for fields in given_]


@given(
    st.binary(max_size=40) | st.builds(lambda cut, add: event()[:cut] + add, st.integers(0, 30), st.binary(max_size=4))
)
def test_other_bytes_are_refused(message: bytes) -> None:
    """What is read at all is, written again, the same message."""
    try:
        found = read_events([event(), message])
    except ValueError:
        return
    fields: dict[str, Any] = {name: found.fields[name][1].as_py() for name in FIELDS}
    again = event(**fields, timestamp=found.timestamps.tolist()[1], delete=found.deletes.tolist()[1])
    assert len(again) <= len(message)  # a number may be written with more bytes than it needs
    assert read_events([again]).fields["table"][0].as_py() == fields["table"]


def test_kinds_are_guessed_and_the_offset_orders() -> None:
    deleted = {"delete": True, "value": b""}
    values = [event(), event(**deleted), event(**deleted, qualifier=b""), None, event(qualifier=b"")]
    found = read(values, epoch=1)
    (batch,) = found.changes
    assert batch.schema.source == SourceTable("shop", "orders")
    assert cells_of(batch.rows) == [
        RawCell(CellPlace(b"r", b"d", b"q", 7), "Put", b"v"),
        RawCell(CellPlace(b"r", b"d", b"q", 7), "DeleteColumn", b""),
        RawCell(CellPlace(b"r", b"d", b"", 7), "DeleteFamily", b""),
        RawCell(CellPlace(b"r", b"d", b"", 7), "Put", b"v"),
    ]
    assert batch.rows.column("__order").to_pylist() == [(1 << 52) + at for at in (0, 1, 2, 4)]
    assert batch.rows.column("written").null_count == 4
    assert found.filtered == {(None, "tombstone"): 1}


def test_tables_of_one_topic_are_apart() -> None:
    found = read([event(table=name) for name in (b"shop:orders", b"orders", b"shop:orders")])
    assert {str(b.schema.source): b.rows.column("__offset").to_pylist() for b in found.changes} == {
        "shop.orders": [0, 2],
        "default.orders": [1],
    }


BAD = [
    ("malformed_avro", b""),
    ("malformed_avro", event()[:-1]),
    ("malformed_avro", event() + b"\0"),
    ("malformed_avro", json.dumps({"key": 1}).encode()),
    ("malformed_avro", b"\0\0\0\0\1" + event()),
    ("missing_key", event(key=b"")),
    ("missing_key", event(family=b"")),
    ("bad_value", event(timestamp=-1)),
    ("bad_value", event(family=b"\xff")),
    ("bad_value", event(family=b"a:b")),
    ("unknown_table", event(table=b"")),
    ("unknown_table", event(table=b"\xff")),
]


@pytest.mark.parametrize(("reason", "value"), BAD)
def test_a_bad_message_is_quarantined_alone(reason: str, value: bytes) -> None:
    found = read([event(), value, event()])
    assert [(q.offset, q.reason) for q in found.quarantined] == [(1, reason)]
    assert sum(len(batch.rows) for batch in found.changes) == 2


def test_a_message_of_another_format_is_named() -> None:
    (quarantined,) = read([b"\0\0\0\0\1" + event()]).quarantined
    assert quarantined.detail.endswith("it begins with a zero byte, as messages with a schema id do")


@pytest.mark.parametrize("table", PROXY_TABLES)
def test_what_the_proxy_itself_wrote_is_read(table: str) -> None:
    for topic in proxy_topic(table).values():
        found = decode(topic, DeclaredSchemas({}), DecodeOptions(format=Format.HBASE_AVRO))
        assert (found.quarantined, found.filtered) == ([], {})
        wanted: list[Any] = [
            fastavro.schemaless_reader(io.BytesIO(value or b""), SCHEMA, None) for value in topic.values
        ]
        (batch,) = found.changes
        assert [cell.place for cell in cells_of(batch.rows)] == [
            CellPlace(one["key"], one["family"], one["qualifier"], one["timestamp"]) for one in wanted
        ]
        assert (batch.rows.column("kind").to_numpy() != "Put").tolist() == [one["delete"] for one in wanted]
