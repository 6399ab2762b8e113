"""Debezium's events in Avro give what the same events give in JSON; what cannot be read is refused, or waited for."""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from binlake.decode.changes import DecodedRecords, RawRecords
from binlake.decode.formats.reader import decode, table_changes
from binlake.decode.options import DecodeOptions, EventFormat
from binlake.decode.schemas.schemas import NoSchemas, SchemaHistory, SchemaSource
from binlake.source.registry import SchemaRegistryClient
from hudilake.errors import TransientError
from tests.binlake.decode import recordings
from tests.binlake.decode.events import reasons
from tests.binlake.decode.formats.avro_recordings import Writer, avro_of
from tests.binlake.decode.formats.registry_server import Registry, serving


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving(Registry()) as found:
        yield found


def options(registry: Registry, **more: Any) -> DecodeOptions:  # noqa: ANN401 - those of DecodeOptions
    client = SchemaRegistryClient(registry.url, retry_s=0)
    return pickle.loads(pickle.dumps(DecodeOptions(registry=client, format=EventFormat.DEBEZIUM_AVRO, **more)))  # type: ignore[no-any-return]


def same(ours: DecodedRecords, theirs: DecodedRecords) -> None:
    """Every batch, with types, order and before images, and everything else."""
    assert len(ours.changes) == len(theirs.changes)
    for mine, other in zip(ours.changes, theirs.changes, strict=True):
        assert mine.schema == other.schema
        assert mine.rows.equals(other.rows)
        assert (mine.before is None) == (other.before is None)
        if mine.before is not None:
            assert mine.before.equals(other.before)
            assert mine.before_at.tolist() == other.before_at.tolist()
    assert ours.filtered == theirs.filtered
    assert ours.controls == theirs.controls
    assert reasons(ours) == reasons(theirs)


@pytest.mark.first(1)
@pytest.mark.parametrize("known", [False, True], ids=["schemas of the messages", "DDL known"])
@pytest.mark.parametrize("database", ["shop", "bank"])
def test_avro_gives_what_json_gives(registry: Registry, database: str, known: bool) -> None:
    writer = Writer()
    schemas: SchemaSource = recordings.history_of(database, "schema") if known else NoSchemas()
    rows = 0
    for topic, partitions in recordings.topics(database, "schema").items():
        if topic.startswith(("_history", "bank_schema.bank.accounts")) or topic.endswith("transaction"):
            continue
        for partition in partitions.values():
            whole = next(recordings.cut(partition, 1_500))
            encoded = writer.records(whole)
            registry.register(writer.ids)
            expected = decode(whole, schemas, DecodeOptions(before_of="all"))
            found = decode(encoded, schemas, options(registry, before_of="all"))
            same(found, expected)
            assert not found.quarantined
            rows += sum(batch.rows.num_rows for batch in found.changes)
    assert rows > 1_400
    ids = {path.rpartition("/")[2] for path in registry.asked}
    assert len(registry.asked) == len(ids), "each schema is asked for once"


def orders() -> RawRecords:
    return next(recordings.cut(recordings.topics("shop", "schema")["shop_schema.shop.orders"][0], 40))


def test_one_other_cell_is_seen(registry: Registry) -> None:
    """The control of the comparison."""
    writer, whole = Writer(), orders()
    frame = json.loads(whole.values[7] or b"")
    frame["payload"]["after"]["prio"] += 1
    values = [*whole.values[:7], json.dumps(frame).encode(), *whole.values[8:]]
    encoded = writer.records(dataclasses.replace(whole, values=values))
    registry.register(writer.ids)
    with pytest.raises(AssertionError):
        same(decode(encoded, NoSchemas(), options(registry)), decode(whole, NoSchemas(), DecodeOptions()))


def test_avro_among_json_is_told_by_its_first_byte(registry: Registry) -> None:
    writer, whole = Writer(), orders()
    encoded = writer.records(whole)
    registry.register(writer.ids)
    half = len(whole) // 2
    mixed = dataclasses.replace(
        whole, keys=encoded.keys[:half] + whole.keys[half:], values=encoded.values[:half] + whole.values[half:]
    )
    found = decode(mixed, NoSchemas(), dataclasses.replace(options(registry), format=EventFormat.AUTO))
    expected = decode(whole, NoSchemas(), DecodeOptions())
    assert not found.quarantined
    assert sum(b.rows.num_rows for b in found.changes) == sum(b.rows.num_rows for b in expected.changes)


def test_the_statements_of_a_ddl_topic_in_avro(registry: Registry) -> None:
    writer, history = Writer(), SchemaHistory()
    (whole,) = recordings.topics("shop", "schema")["shop_schema"].values()
    encoded = writer.records(whole)
    registry.register(writer.ids)
    for value in encoded.values:
        for change in table_changes(value or b"", options(registry)):
            history.apply(change, DecodeOptions())
    assert history.tables == recordings.history_of("shop", "schema").tables


GOOD_SCHEMA = {
    "type": "struct",
    "name": "s.db.t.Envelope",
    "fields": [
        {
            "type": "struct",
            "optional": True,
            "field": field,
            "name": "s.db.t.Value",
            "fields": [
                {"type": "int32", "field": "id"},
                {"type": "double", "optional": True, "field": "f"},
            ],
        }
        for field in ("before", "after")
    ]
    + [
        {
            "type": "struct",
            "field": "source",
            "name": "io.debezium.Source",
            "fields": [
                {"type": kind, "field": name}
                for name, kind in (("db", "string"), ("table", "string"), ("file", "string"), ("pos", "int64"))
            ],
        },
        {"type": "string", "field": "op"},
    ],
}


def event(key: int, number: float = 1.5) -> dict[str, Any]:
    place = {"db": "db", "table": "t", "file": "bin.000007", "pos": 100}
    return {"before": None, "after": {"id": key, "f": number}, "source": place, "op": "c"}


def decoded(registry: Registry, writer: Writer, values: list[bytes | None], **more: Any) -> DecodedRecords:  # noqa: ANN401
    registry.register(writer.ids)
    keys: list[bytes | None] = more.pop("keys", [b'{"id":1}'] * len(values))
    found = decode(recordings.records(keys, values, "s.db.t"), NoSchemas(), options(registry, **more))
    assert sum(b.rows.num_rows for b in found.changes) + len(found.quarantined) + sum(found.filtered.values()) == len(
        values
    )
    return found


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("truncated", "malformed_avro"),
        ("trailing bytes", "malformed_avro"),
        ("head alone", "malformed_avro"),
        ("unknown id", "unknown_schema_id"),
        ("NaN", "nan"),
        ("infinite", "nan"),
        ("no Avro schema", "unsupported_type"),
        ("json", "unknown_message"),
        ("empty", "malformed_avro"),
        ("invalid utf-8", "malformed_avro"),
    ],
)
def test_one_bad_message_among_good_ones(registry: Registry, name: str, reason: str) -> None:
    writer, schema = Writer(), avro_of(GOOD_SCHEMA)
    good = writer.message(schema, event(1))
    registry.schemas[77] = '{"type":"nonsense"}'
    bad = {
        "truncated": good[:-9],
        "trailing bytes": good + b"\0",
        "head alone": good[:5],
        "unknown id": b"\0\0\0\1\7" + good[5:],
        "NaN": writer.message(schema, event(2, float("nan"))),
        "infinite": writer.message(schema, event(2, float("-inf"))),
        "no Avro schema": b"\0\0\0\0\x4d" + good[5:],
        "json": b'{"hello":"world"}',
        "empty": b"",
        "invalid utf-8": good.replace(b"bin.000007", b"bin.\xff00007"),
    }[name]
    found = decoded(registry, writer, [good, bad, good])
    assert reasons(found) == {1: reason}
    assert found.quarantined[0].value == bad
    if name == "unknown id":
        for word in ("263", "s.db.t-value", registry.url):
            assert word in found.quarantined[0].detail


def test_a_key_that_cannot_be_read_refuses_its_record(registry: Registry) -> None:
    writer, schema = Writer(), avro_of(GOOD_SCHEMA)
    good = writer.message(schema, event(1))
    key = writer.message({"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}, {"id": 1})
    found = decoded(registry, writer, [good, good], keys=[key, b"\0\0\0\1\7" + key[5:]])
    assert reasons(found) == {1: "unknown_schema_id"}
    assert found.quarantined[0].key == b"\0\0\0\1\7" + key[5:]
    assert found.changes[0].schema.key == ("id",)


@pytest.mark.parametrize(
    ("kind", "value", "spelling"),
    [
        ("boolean", True, b"\2"),
        ({"type": "enum", "name": "Level", "symbols": ["LOW", "HIGH"]}, "HIGH", b"\1"),
        ("int", 1, b"\x81\x80\x80\x80\x10"),
        ("long", 1, b"\xff" * 9 + b"\3"),
        ({"type": "array", "items": "int"}, [1], b"\1\4\2\0"),
    ],
    ids=["boolean", "enum", "int", "long", "array"],
)
def test_a_key_whose_bytes_are_no_value_refuses_its_record(
    registry: Registry,
    kind: Any,  # noqa: ANN401 - Avro
    value: object,
    spelling: bytes,
) -> None:
    writer = Writer()
    good = writer.message(avro_of(GOOD_SCHEMA), event(1))
    key = writer.message({"type": "record", "name": "Key", "fields": [{"name": "id", "type": kind}]}, {"id": value})
    found = decoded(registry, writer, [good, good], keys=[key, key[:5] + spelling])
    assert reasons(found) == {1: "malformed_avro"}
    assert found.quarantined[0].detail.startswith("key: no record of schema 2: ")


def test_a_registry_without_an_answer_is_no_bad_input(registry: Registry) -> None:
    writer = Writer()
    value = writer.message(avro_of(GOOD_SCHEMA), event(1))
    registry.failures = [503]
    with pytest.raises(TransientError, match="503"):
        decoded(registry, writer, [value])
    assert not decoded(registry, writer, [value]).quarantined


def test_without_a_registry_the_message_says_what_to_set() -> None:
    value = Writer().message(avro_of(GOOD_SCHEMA), event(1))
    found = decode(recordings.records([None], [value]), NoSchemas(), DecodeOptions())
    assert reasons(found) == {0: "unknown_schema_id"}
    assert "source.registry.url" in found.quarantined[0].detail


def test_any_changed_byte_is_survived(registry: Registry) -> None:
    writer = Writer()
    good = writer.message(avro_of(GOOD_SCHEMA), event(1))
    values: list[bytes | None] = [good]
    values += [good[:i] + bytes([byte]) + good[i + 1 :] for i in range(len(good)) for byte in (0, 1, 0x22, 0x7F, 0xFF)]
    found = decoded(registry, writer, [*values, good])
    offsets = {offset for batch in found.changes for offset in batch.rows["__offset"].to_pylist()}
    assert {0, len(values)} <= offsets
    for batch in found.changes:
        batch.rows.validate(full=True)
