"""Avro records that are no change events, as fastavro writes them: types, nested values, keys, faults."""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pytest

from binlake.decode.changes import META_NAMES, DecodedRecords, RawRecords, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions, EventFormat, PlainTopics
from binlake.decode.schemas.schemas import NoSchemas
from binlake.source.registry import SchemaRegistryClient
from tests.binlake.decode.formats.registry_server import Registry, serving

T = SourceTable("web", "clicks")
ENUM = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}
SCHEMA = {
    "type": "record",
    "name": "Click",
    "namespace": "web",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "small", "type": ["null", "int"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "seen", "type": ["null", {"type": "long", "logicalType": "local-timestamp-millis"}]},
        {"name": "uid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "inner", "type": {"type": "record", "name": "In", "fields": [{"name": "kind", "type": ENUM}]}},
        {"name": "kind", "type": "Kind"},
        {"name": "raw", "type": {"type": "fixed", "name": "Two", "size": 2}},
        {"name": "either", "type": ["null", "string", "long"]},
        {"name": "ratios", "type": {"type": "array", "items": "double"}},
        {"name": "ok", "type": "boolean"},
        {"name": "f", "type": "float"},
    ],
}
AT = dt.datetime(2024, 2, 29, 10, 0, 0, 123456, dt.UTC)
ROW: dict[str, Any] = {
    "id": 7,
    "small": None,
    "price": Decimal("-12.50"),
    "day": dt.date(2024, 2, 29),
    "at": AT,
    "seen": AT.replace(microsecond=123000, tzinfo=None),
    "uid": "8b6f0ba2-7dc4-4d4b-9c1c-1c6a3d6e4d4b",
    "inner": {"kind": "A"},
    "kind": "B",
    "raw": b"\0\1",
    "either": "x",
    "ratios": [0.5],
    "ok": True,
    "f": 0.1,
}
READ = ROW | {
    "seen": AT.replace(microsecond=123000),
    "inner": '{"kind":"A"}',
    "either": '"x"',
    "ratios": "[0.5]",
    "f": float(np.float32(0.1)),
}
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving(Registry(schemas={1: json.dumps(SCHEMA), 2: json.dumps(KEY), 3: '"long"'})) as served:
        yield served


def body(schema: Any, value: Any, schema_id: int | None) -> bytes:  # noqa: ANN401 - Avro
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    head = b"" if schema_id is None else b"\0" + schema_id.to_bytes(4, "big")
    return head + out.getvalue()


def read(
    values: list[bytes | None],
    keys: list[bytes | None],
    registry: Registry | None,
    **topics: Any,  # noqa: ANN401
) -> DecodedRecords:
    plain = PlainTopics(("clicks",), T, **{"key": ("id",), **topics})
    client = None if registry is None else SchemaRegistryClient(registry.url, retry_s=0)
    options = DecodeOptions(format=EventFormat.AVRO, plain=(plain,), registry=client)
    offsets = np.arange(len(values))
    return decode(RawRecords("clicks", 0, offsets, offsets, keys, values), NoSchemas(), options)


def rows(found: DecodedRecords) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in META_NAMES} for b in found.changes for row in b.rows.to_pylist()]


def test_values_of_all_types(registry: Registry) -> None:
    found = read([body(SCHEMA, ROW, 1)], [None], registry)
    assert not found.quarantined
    assert rows(found) == [READ]


def test_the_schema_of_a_file() -> None:
    found = read([body(SCHEMA, ROW, None), b"\2"], [None, None], None, avro_schema=json.dumps(SCHEMA))
    assert rows(found) == [READ]
    assert [(q.offset, q.reason) for q in found.quarantined] == [(1, "malformed_avro")]


def test_a_record_without_a_value_deletes_by_its_key(registry: Registry) -> None:
    keys = [body(KEY, {"id": 7}, 2), body("long", 8, 3), b"text", None]
    found = read([None] * 4, keys, registry)
    assert rows(found) == [{"id": 7}, {"id": 8}]
    assert {op for batch in found.changes for op in batch.rows.column("__op").to_pylist()} == {1}
    assert [(q.offset, q.reason) for q in found.quarantined] == [(2, "malformed_avro"), (3, "missing_key")]


def test_bytes_that_are_no_value() -> None:
    """fastavro takes each: an enum, a branch of a union, a boolean, a number."""
    fields = [{"name": "id", "type": "int"}, {"name": "kind", "type": ENUM}]
    fields += [{"name": "either", "type": ["null", "string", "long"]}, {"name": "ok", "type": "boolean"}]
    good = b"\2\0\4\6\1"
    bad = [b"\2\1\4\6\1", b"\2\0\1\6\1", b"\2\0\4\6\2", b"\x80\x80\x80\x80\x10\0\4\6\1"]
    schema = {"type": "record", "name": "R", "fields": fields}
    found = read([good, *bad, good], [None] * 6, None, avro_schema=json.dumps(schema))
    assert rows(found) == [{"id": 1, "kind": "A", "either": "3", "ok": True}] * 2
    assert [(q.offset, q.reason) for q in found.quarantined] == [(n, "malformed_avro") for n in range(1, 5)]
    assert found.quarantined[1].detail.endswith("the union has no branch of this number in either, byte 2")


def test_faults(registry: Registry) -> None:
    values: list[bytes | None] = [
        body(SCHEMA, ROW, 9),
        body(SCHEMA, ROW, 1)[:-1],
        body(SCHEMA, ROW | {"f": float("nan")}, 1),
        body(SCHEMA, ROW | {"ratios": [float("inf")]}, 1),
        body("long", 1, 3),
        b"{}",
        body(SCHEMA, ROW, 1),
    ]
    found = read(values, [None] * len(values), registry)
    assert [q.reason for q in found.quarantined] == [
        "unknown_schema_id",
        "malformed_avro",
        "nan",
        "nan",
        "unknown_message",
        "malformed_avro",
    ]
    assert rows(found) == [READ]
