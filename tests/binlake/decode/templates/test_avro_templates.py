"""What compiled code reads of Avro is what the same records give as JSON: the same rows, order and faults."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.changes import DecodedRecords, RawRecords
from binlake.decode.formats import avro
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions, EventFormat
from binlake.decode.schemas.schemas import NoSchemas, SchemaSource
from binlake.decode.templates import avro_scan
from tests.binlake.decode import recordings
from tests.binlake.decode.events import declared, reasons
from tests.binlake.decode.formats.avro_recordings import Writer
from tests.binlake.decode.mangled import changed_bytes, mangled
from tests.binlake.decode.ways import same

Schema = Any
Row = dict[str, Any]
CONNECT = "org.apache.kafka.connect.data."
DEBEZIUM = "io.debezium."


@dataclass(frozen=True)
class Registered:
    """A registry of the schemas that a writer has used."""

    texts: dict[int, str]

    @staticmethod
    def of(writer: Writer) -> Registered:
        return Registered({number: text for text, number in writer.ids.items()})

    def schema(self, schema_id: int, subject: str) -> str | None:
        return self.texts.get(schema_id)

    def describe(self) -> str:
        return "memory"


def as_json(found: RawRecords, schemas: SchemaSource, options: DecodeOptions) -> DecodedRecords:
    """As it is read without the compiled reader."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(avro, "_scanned", lambda chunk, opener, live: ([], live))
        patch.setattr(avro, "_valid_keys", lambda opener, keys: None)
        return decode(found, schemas, options)


def check(
    writer: Writer,
    values: list[bytes | None],
    keys: list[bytes | None] | None = None,
    schemas: SchemaSource | None = None,
    **more: Any,  # noqa: ANN401 - those of DecodeOptions
) -> DecodedRecords:
    """The same in both ways; returns what the compiled reader gives."""
    options = DecodeOptions(**{"format": EventFormat.DEBEZIUM_AVRO, **more}, registry=Registered.of(writer))
    schemas = schemas or NoSchemas()
    found = recordings.records(keys or [b'{"id":1}'] * len(values), values, "s.db.t")
    ours = decode(found, schemas, options)
    same(ours, as_json(found, schemas, options))
    return ours


def optional(kind: Schema) -> Schema:
    return ["null", kind]


def named(kind: str, name: str, **parameters: str) -> Schema:
    return {"type": kind, "connect.name": name} | ({"connect.parameters": parameters} if parameters else {})


TEXTS = st.text(max_size=12) | st.sampled_from(["", "a" * 40, "é" * 9, "\0", '"\\', "\U0001f9ea", "z" * 7 + "ß"])
INTS = st.sampled_from([0, 1, -1, 63, 64, -64, -65, 2**31 - 1, -(2**31), 20_000]) | st.integers(-(2**31), 2**31 - 1)
LONGS = INTS | st.sampled_from([2**63 - 1, -(2**63), -(2**63) + 1, 2**62]) | st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.floats() | st.sampled_from([0.1, -0.0, 1e300, 5e-324, 1.0000000596046448, 3.4028235677973366e38])
FLOATS = st.floats(width=32) | st.sampled_from([0.5, -0.0])
BYTES = st.binary(max_size=20)
POINT = {
    "type": "record",
    "name": "Point",
    "connect.name": DEBEZIUM + "data.geometry.Point",
    "fields": [
        {"name": "x", "type": "double"},
        {"name": "y", "type": "double"},
        {"name": "wkb", "type": optional("bytes")},
        {"name": "srid", "type": optional("int")},
    ],
}
VARIABLE = {
    "type": "record",
    "name": "VariableScaleDecimal",
    "connect.name": DEBEZIUM + "data.VariableScaleDecimal",
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
}
POINTS = st.fixed_dictionaries({"x": DOUBLES, "y": DOUBLES, "wkb": st.none() | BYTES, "srid": st.none() | INTS})
VARIABLES = st.fixed_dictionaries({"scale": st.integers(0, 5) | INTS, "value": BYTES})
#: A type of a column, the values of it, and MySQL's types that may be declared for it.
KINDS: list[tuple[Schema, st.SearchStrategy[Any], list[str]]] = [
    ("int", INTS, ["int", "tinyint"]),
    (named("int", DEBEZIUM + "time.Date"), INTS, []),
    ("long", LONGS, ["bigint unsigned", "bigint"]),
    (named("long", DEBEZIUM + "time.MicroTimestamp"), LONGS, []),
    (
        named("long", DEBEZIUM + "time.NanoTimestamp"),
        st.integers(-(9 * 10**12), 9 * 10**12).map(lambda n: n * 1000) | LONGS,
        [],
    ),
    ({"type": "long", "logicalType": "timestamp-millis", "connect.name": CONNECT + "Timestamp"}, LONGS, []),
    (named("int", DEBEZIUM + "time.Time"), INTS, []),
    ("boolean", st.booleans(), ["tinyint(1)", "bit(1)"]),
    ("float", FLOATS, ["float"]),
    ("double", DOUBLES, ["float", "double", "decimal(10,2)"]),
    ("string", TEXTS, ["varchar(10)", "decimal(10,2)", "varbinary(9)", "enum('a','b')"]),
    (named("string", DEBEZIUM + "data.Json"), TEXTS, ["json"]),
    (named("string", DEBEZIUM + "time.ZonedTimestamp"), st.just("2025-10-09T08:00:00Z") | TEXTS, []),
    (named("string", DEBEZIUM + "data.Enum", allowed="a,b"), st.sampled_from(["a", "b"]), []),
    ({"type": "enum", "name": "Level", "symbols": ["LOW", "HIGH"]}, st.sampled_from(["LOW", "HIGH"]), []),
    ("bytes", BYTES, ["blob"]),
    (named("bytes", DEBEZIUM + "data.Bits", length="12"), BYTES, ["bit(12)"]),
    (named("bytes", DEBEZIUM + "data.Json"), BYTES, []),
    (named("bytes", CONNECT + "Decimal", scale="2", **{"connect.decimal.precision": "12"}), BYTES, ["decimal(12,2)"]),
    (
        {"type": "bytes", "logicalType": "decimal", "scale": 0, "precision": 20},
        BYTES,
        ["bigint unsigned"],
    ),
    ({"type": "fixed", "name": "Hash", "size": 4}, st.binary(min_size=4, max_size=4), []),
    (POINT, POINTS, ["point"]),
    (VARIABLE, VARIABLES, ["decimal(10,2)"]),
    ({"type": "array", "items": "int"}, st.lists(INTS, max_size=2), []),
    ({"type": "map", "values": "string"}, st.just({"a": "b"}), []),
]
SOURCE: list[Row] = [
    {"name": "version", "type": "string"},
    {"name": "snapshot", "type": [{"type": "string", "connect.name": DEBEZIUM + "data.Enum"}, "null"]},
    {"name": "db", "type": "string"},
    {"name": "table", "type": optional("string")},
    {"name": "server_id", "type": "long"},
    {"name": "gtid", "type": optional("string")},
    {"name": "file", "type": "string"},
    {"name": "pos", "type": "long"},
    {"name": "row", "type": optional("int")},
    {"name": "ts_ms", "type": "long"},
]
BLOCK: Schema = {
    "type": "record",
    "name": "block",
    "fields": [{"name": "id", "type": "string"}, {"name": "total_order", "type": "long"}],
}


def envelope_schema(columns: dict[str, Schema]) -> Schema:
    """Connect's for rows of these columns; a type that has a name is defined once."""
    image: Row = {"type": "record", "name": "Value", "namespace": "s.db.t", "fields": []}
    met: set[str] = set()
    for name, kind in columns.items():
        image["fields"].append({"name": name, "type": once(kind, met)})
    fields = {"before": optional(image), "after": optional("Value")}
    fields |= {"source": {"type": "record", "name": "Source", "fields": SOURCE}}
    fields |= {"transaction": optional(BLOCK), "op": "string", "ts_ms": optional("long")}
    members = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "Envelope", "namespace": "s.db.t", "fields": members}


def once(kind: Schema, met: set[str]) -> Schema:
    if isinstance(kind, list):
        return [once(part, met) for part in kind]
    if isinstance(kind, dict) and "name" in kind:
        if kind["name"] in met:
            return kind["name"]
        met.add(kind["name"])
    return kind


def event(after: Row | None, before: Row | None = None, op: str = "c", pos: int = 100, **more: Any) -> Row:  # noqa: ANN401
    place = {"version": "3.4", "snapshot": "false", "db": "db", "table": "t", "server_id": 7, "gtid": "0-1-5"}
    place |= {"file": "bin.000007", "pos": pos, "row": 0, "ts_ms": 1_700_000_000_000} | more
    return {"before": before, "after": after, "source": place, "transaction": None, "op": op, "ts_ms": 1}


@st.composite
def drawn(draw: st.DrawFn) -> tuple[Schema, list[Row], dict[str, str], list[bytes | None]]:
    """A schema, events of it, and what may be declared for its columns; and keys in place of the events' own."""
    chosen = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=5))
    columns: dict[str, Schema] = {"id": "int"}
    values: dict[str, st.SearchStrategy[Any]] = {"id": INTS}
    types: dict[str, str] = {"id": "int"}
    for n, (kind, held, declarable) in enumerate(chosen):
        form = draw(st.sampled_from(["plain", "null first", "null last", "alone"]))
        forms = {"plain": kind, "null first": ["null", kind], "null last": [kind, "null"], "alone": [kind]}
        columns[f"c{n}"] = forms[form]
        values[f"c{n}"] = st.none() | held if form.startswith("null") else held
        if declarable:
            types[f"c{n}"] = draw(st.sampled_from(declarable))
    rows = st.fixed_dictionaries(values)
    events = draw(
        st.lists(
            st.builds(
                event,
                st.none() | rows,
                st.none() | rows,
                st.sampled_from(["c", "u", "d", "r", "t", "m", "", "é", "uu"]),
                st.integers(0, 2**33) | st.sampled_from([-1, 2**63 - 1]),
                row=st.none() | st.sampled_from([0, 1, -1, 2**31 - 1]),
                ts_ms=st.sampled_from([0, 1_700_000_000_000, -(2**63)]),
                gtid=st.none() | st.just("5-1-5"),
                table=st.sampled_from(["t", "t", "u", None, ""]),
                snapshot=st.sampled_from(["true", "false", "incremental", None]),
            ),
            min_size=1,
            max_size=8,
        )
    )
    return envelope_schema(columns), events, types, [b'{"id":1}'] * len(events)


@given(drawn(), st.randoms(use_true_random=False))
def test_any_schema_and_values(
    found: tuple[Schema, list[Row], dict[str, str], list[bytes | None]], dice: random.Random
) -> None:
    schema, events, types, _ = found
    writer = Writer()
    values: list[bytes | None] = [writer.message(schema, one) for one in events]
    check(writer, values)
    check(writer, values, before_of="all", epoch_of_server=((7, 3),))
    if types.keys() == {name["name"] for name in schema["fields"][0]["type"][1]["fields"]}:
        check(writer, values, schemas=declared(types, ("id",)))
    check(writer, [*values, *mangled(dice, [value or b"" for value in values], 20), *values])


COLUMNS: dict[str, Schema] = {
    "id": "int",
    "name": optional("string"),
    "amount": optional(named("bytes", CONNECT + "Decimal", scale="2", **{"connect.decimal.precision": "10"})),
    "f": optional("float"),
    "shape": optional(POINT),
    "level": optional({"type": "enum", "name": "Level", "symbols": ["LOW", "HIGH"]}),
}
ROW: Row = {
    "id": 1,
    "name": "müsli",
    "amount": b"\1\x90",
    "f": 0.5,
    "shape": {"x": 1.0, "y": 2.0, "wkb": b"\1\2", "srid": None},
    "level": "HIGH",
}
SCHEMA = envelope_schema(COLUMNS)
KEY: Schema = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}


def messages(writer: Writer) -> list[bytes]:
    shapeless = ROW | {"shape": None, "name": None}
    made = [
        event(ROW),
        event(ROW, shapeless, "u"),
        event(None, ROW, "d"),
        event(shapeless, ROW, "u"),
        event(ROW, op="r"),
    ]
    return [writer.message(SCHEMA, one) for one in made]


@pytest.mark.full
def test_every_changed_byte_is_told_alike() -> None:
    writer = Writer()
    for good in messages(writer)[:3]:
        assert check(writer, [good, *changed_bytes(good), good], before_of="all").by_template >= 2


@pytest.mark.parametrize("seed", range(3))
def test_damaged_and_cut_messages_are_told_alike(seed: int) -> None:
    dice, writer = random.Random(seed), Writer()
    good = messages(writer)
    cut: list[bytes | None] = [value[:size] for value in good for size in range(len(value))]
    longer: list[bytes | None] = [value + b"\0" for value in good]
    found = check(writer, [*good, *mangled(dice, good, 800), *cut, *longer, None, *good], before_of="all")
    assert found.by_template >= 2 * len(good)
    assert {"malformed_avro", "unknown_schema_id"} <= {one.reason for one in found.quarantined}


def spelled(writer: Writer, columns: dict[str, Schema], values: bytes) -> bytes:
    """An event whose row, in an envelope of these columns, has such bytes behind its id."""
    writer.message(envelope_schema({"id": "int", **columns}), event(None))
    as_fixed = envelope_schema({"id": "int", "c": {"type": "fixed", "name": "Spelled", "size": len(values)}})
    body = writer.message(as_fixed, event({"id": 1, "c": values}))[5:]
    schema_id = writer.ids[json.dumps(envelope_schema({"id": "int", **columns}))]
    return b"\0" + schema_id.to_bytes(4, "big") + body


LEVEL: Schema = {"type": "enum", "name": "Level", "symbols": ["LOW", "HIGH"]}
OTHER: Schema = {"type": "enum", "name": "Other", "symbols": ["NONE"]}
NAN, INFINITE = struct.pack("<d", float("nan")), struct.pack("<d", float("-inf"))
#: A type of a column, bytes of it that are read, and bytes that are none of its values. Another number follows them.
SPELLINGS: list[tuple[Schema, list[bytes], list[bytes]]] = [
    (
        "int",
        [b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\x0f", b"\x82\0"],
        [b"\x80\x80\x80\x80\x10", b"\x81\x80\x80\x80\x10", b"\x82\x80\x80\x80\x80\0"],
    ),
    ("long", [b"\xff" * 9 + b"\x01", b"\xfe" + b"\xff" * 8 + b"\x01"], [b"\xff" * 9 + b"\x03", b"\xff" * 10 + b"\x01"]),
    ("bytes", [b"\0", b"\4\xff\0"], [b"\3" + b"\4" * 9]),
    ("boolean", [b"\0", b"\1"], [b"\2", b"\xff"]),
    ("float", [struct.pack("<f", 3.4e38)], [struct.pack("<f", float("inf")), struct.pack("<f", float("nan"))]),
    ("double", [struct.pack("<d", 1.7e308)], [NAN, INFINITE]),
    (["null", "int"], [b"\0", b"\2\6"], [b"\4\6", b"\1\6"]),
    (["int"], [b"\0\6"], [b"\2\6", b"\1\6"]),
    (LEVEL, [b"\0", b"\2"], [b"\4", b"\1", b"\x82\x80\x80\x80\x80\0"]),
    (
        "string",
        [
            bytes([2 * len(text.encode())]) + text.encode()
            for text in ("", "a" * 9, "ÿ", "\u0800\ud7ff", "\U00010000\U0010ffff")
        ],
        [
            bytes([2 * len(text)]) + text
            for text in (
                b"\x80", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80",
                b"\xf5\x80\x80\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"aaaaaaa\x80", b"aaaaaaaa\xff",
            )
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "good", "bad"), SPELLINGS, ids=[str(kind)[:20] for kind, _, _ in SPELLINGS])
def test_bytes_that_are_no_value(kind: Schema, good: list[bytes], bad: list[bytes]) -> None:
    """Each is left to the general decoder, which refuses it."""
    writer, columns = Writer(), {"c": kind, "end": OTHER}
    values: list[bytes | None] = [spelled(writer, columns, value + b"\0") for value in good]
    assert check(writer, values).by_template == len(good)
    for value in bad:
        found = check(writer, [*values, spelled(writer, columns, value + b"\0"), *values])
        assert found.by_template == 2 * len(good)
        assert reasons(found).keys() == {len(good)}


def test_a_branch_in_more_bytes_than_it_needs() -> None:
    """It is legal: the general decoder reads it."""
    writer = Writer()
    found = check(writer, [spelled(writer, {"c": ["null", "int"], "end": OTHER}, b"\x82\0\6" + b"\0")])
    assert found.by_template == 0
    assert found.changes[0].rows["c"].to_pylist() == [3]


def test_a_length_that_leads_back() -> None:
    """One byte is both the length of a text, -1, and the number behind it."""
    writer = Writer()
    found = check(writer, [spelled(writer, {"c": "bytes", "end": "int"}, b"\1")])
    assert found.by_template == 0
    assert reasons(found) == {0: "malformed_avro"}


def test_null_may_be_either_branch() -> None:
    writer, schema = Writer(), envelope_schema({"id": "int", "first": ["null", "int"], "last": ["int", "null"]})
    rows = [{"id": n, "first": first, "last": last} for n, (first, last) in enumerate(product((None, 5), (None, 6)))]
    found = check(writer, [writer.message(schema, event(row)) for row in rows])
    assert found.by_template == len(rows)
    assert found.changes[0].rows.select(["id", "first", "last"]).to_pylist() == rows


def test_schemas_that_are_left() -> None:
    """Images that differ in columns or in a type of one, and a union of two types."""

    def of(before: dict[str, Schema], after: dict[str, Schema]) -> Schema:
        schema = envelope_schema(before)
        fields = [{"name": name, "type": kind} for name, kind in after.items()]
        schema["fields"][1]["type"] = optional({"type": "record", "name": "After", "fields": fields})
        return schema

    ids: dict[str, Schema] = {"id": "int"}
    writer = Writer()
    assert check(writer, [writer.message(of(ids, ids), event({"id": 1}))]).by_template == 1
    for before, after in ((ids, {"id": "int", "c": "int"}), (ids, {"id": "string"})):
        row = {name: "5" if kind == "string" else 5 for name, kind in after.items()}
        assert check(writer, [writer.message(of(before, after), event(row))]).by_template == 0
    either = envelope_schema({"id": "int", "c": ["int", "string"]})
    assert check(writer, [writer.message(either, event({"id": 1, "c": "a"}))]).by_template == 0


def test_doubles_that_round_to_another_float() -> None:
    """Where a column is a FLOAT, a number half way between two of them is left, and so is the least beside it."""
    writer, schema = Writer(), envelope_schema({"id": "int", "c": "double"})
    half = 1 + 2.0**-24
    sure, unsure = (
        [0.5, 0.1, -0.0, 1e-40],
        [half, math.nextafter(half, 0), math.nextafter(half, 2), 3.4028235677973366e38],
    )
    values: list[bytes | None] = [writer.message(schema, event({"id": 1, "c": value})) for value in sure + unsure]
    floats = declared({"id": "int", "c": "float"}, ("id",))
    assert check(writer, values, schemas=floats).by_template == len(values)


def test_bytes_where_text_is_declared() -> None:
    """A name that Debezium gives to texts alone: the bytes come as the base64 that JSON has for them."""
    writer, schema = Writer(), envelope_schema({"id": "int", "c": named("bytes", DEBEZIUM + "data.Json")})
    check(writer, [writer.message(schema, event({"id": 1, "c": b"abc"}))])


def test_an_event_without_a_table() -> None:
    writer = Writer()
    values: list[bytes | None] = [writer.message(SCHEMA, event(ROW, table=table)) for table in ("t", None)]
    assert check(writer, values).by_template == 1


def test_other_messages_among_envelopes() -> None:
    """Of other schemas, tables and formats, and without a row."""
    writer, other = Writer(), envelope_schema({"id": "long", "tags": {"type": "array", "items": "string"}})
    flat: Schema = {"type": "record", "name": "Flat", "fields": [{"name": "id", "type": "int"}]}
    values: list[bytes | None] = []
    for n in range(60):
        values += [
            writer.message(SCHEMA, event(ROW | {"id": n}, pos=n)),
            writer.message(other, event({"id": n, "tags": ["a"]}, table="u")),
            writer.message(SCHEMA, event(ROW, table="v", pos=n)),
            writer.message(SCHEMA, event(ROW, ROW, "d")),
            writer.message(SCHEMA, event(None, None, "t")),
            writer.message(SCHEMA, event(None, None, "d")),
            writer.message(flat, {"id": n}),
            json.dumps(event(None, None, "t")).encode(),
            b"\0\0\0\0\x63" + b"\2\2",
            None,
            b"null",
        ]
    keys: list[bytes | None] = [writer.message(KEY, {"id": n}) for n in range(len(values))]
    for more in (
        {},
        {"flat_tombstone_deletes": True},
        {"epoch_of_gtid_domain": (("0", 5),)},
        {"format": EventFormat.AUTO},
    ):
        assert check(writer, values, keys, **more).by_template == 120
    assert check(writer, values, keys, max_nesting=3).by_template == 0


def test_keys_in_avro() -> None:
    """Deletes without an image have the values of the key; keys of two schemas, null ones and bad ones."""
    writer = Writer()
    values: list[bytes | None] = [*messages(writer), writer.message(SCHEMA, event(None, None, "d"))]
    two: Schema = {"type": "record", "name": "Key", "fields": [{"name": n, "type": "int"} for n in ("id", "__dbz__x")]}
    keys: list[bytes | None] = [writer.message(KEY, {"id": n}) for n in range(len(values))]
    assert check(writer, values, keys).changes[0].schema.key == ("id",)
    others = [
        writer.message(two, {"id": 3, "__dbz__x": 4}),
        None,
        b'{"id":5}',
        (keys[0] or b"") + b"\0",
        b"\0\0\0\0\x63\0",
    ]
    for key in others:
        check(writer, values, [*keys[:-1], key])
    check(writer, values, [others[0]] * len(values))
    number = writer.message("int", 5)
    check(writer, values, [number] * len(values))


def test_two_ids_of_one_schema() -> None:
    writer = Writer()
    good = messages(writer)
    writer.ids[json.dumps(SCHEMA) + " "] = 9
    found = check(writer, [*good, *(b"\0\0\0\0\x09" + value[5:] for value in good)])
    assert (found.by_template, len(found.changes)) == (2 * len(good), 2), "the texts differ"


def recorded() -> Iterator[tuple[RawRecords, Writer]]:
    writer = Writer()
    for database in ("shop", "bank"):
        for topic, partitions in recordings.topics(database, "schema").items():
            if not topic.startswith(("_history", "__debezium", "_notify")) and not topic.endswith("transaction"):
                for part in partitions.values():
                    yield writer.records(next(recordings.cut(part, 1_500))), writer


@pytest.mark.full
def test_most_of_a_recording_is_read_by_compiled_code() -> None:
    rows = read = 0
    for encoded, writer in recorded():
        options = DecodeOptions(format=EventFormat.DEBEZIUM_AVRO, registry=Registered.of(writer), before_of="all")
        found = decode(encoded, NoSchemas(), options)
        same(found, as_json(encoded, NoSchemas(), options))
        rows += sum(batch.rows.num_rows for batch in found.changes)
        read += found.by_template
    assert rows > 1_400
    assert read / rows > 0.99


def test_a_wrong_reader_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: an event whose op and images do not fit together is taken."""
    writer = Writer()
    values: list[bytes | None] = [writer.message(SCHEMA, event(ROW)), writer.message(SCHEMA, event(ROW, None, "d"))]
    assert check(writer, values).by_template == 1
    monkeypatch.setattr(avro_scan, "sound_heads", lambda reading, of_before, traced: reading.known)
    with pytest.raises(AssertionError):
        check(writer, values)
