"""What the check of Avro records accepts is a value of the writer's schema, and what it refuses is none.

The judges are fastavro's writer, and a reader that follows the specification line by line: a list of the forms that
are legal, though a writer would not choose them, comes from it.
"""

from __future__ import annotations

import io
import json
import math
import random
import struct
from dataclasses import dataclass, field
from typing import Any

import fastavro
import pytest

from binlake.decode.formats.avro_schema import without_logical_types
from binlake.decode.formats.plain_avro_schema import plain_schema
from binlake.decode.templates.avro_check import AvroCheck, avro_check

Schema = Any
LEVEL: Schema = {"type": "enum", "name": "Level", "symbols": ["LOW", "HIGH"]}
INNER: Schema = {
    "type": "record",
    "name": "Inner",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "boolean"}],
}
FIXED: Schema = {"type": "fixed", "name": "Two", "size": 2}


def check_of(schema: Schema) -> AvroCheck:
    return plain_schema(json.dumps(schema)).check


def fault(check: AvroCheck, record: bytes) -> str:
    """What is wrong with a record, without its schema and place; empty if nothing is."""
    told = check.fault(b"head" + record, 4, "s")
    return (
        ""
        if told is None
        else told.detail.removeprefix("no record of s: ").partition(", byte")[0].removesuffix(" in []")
    )


INT, LONG = "no number of 32 bits in at most 5 bytes", "no number of 64 bits in at most 10 bytes"
CUT, LEFT = "the message ends before the value does", "bytes are left over behind the record"
COUNT, SIZE = "more items than bytes that are left", "the block does not end where its size says"
LENGTH, UTF8, TWICE = "the length is negative", "the text is not UTF-8", "the map has a key twice"
BOOLEAN, SYMBOL = "a boolean is neither 0 nor 1", "the enum has no symbol of this number"
BRANCH, SPECIAL = "the union has no branch of this number", "a number that is not finite"
LEAST = b"\xff" * 9 + b"\1"
INTS: Schema = {"type": "array", "items": "int"}
MAP: Schema = {"type": "map", "values": "int"}
NESTED: Schema = {"type": "array", "items": INTS}
#: A type, bytes that are values of it, and bytes that are none, with what is said of them.
CASES: list[tuple[Schema, list[bytes], dict[bytes, str]]] = [
    ("null", [b""], {b"\0": LEFT}),
    ("boolean", [b"\0", b"\1"], {b"\2": BOOLEAN, b"\xff": BOOLEAN, b"": CUT, b"\1\0": LEFT}),
    (
        "int",
        [b"\0", b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\x0f", b"\x80\0", b"\x82\x80\x80\x80\0"],
        dict.fromkeys([b"\x80\x80\x80\x80\x10", b"\x81\x80\x80\x80\x10", b"\x80\x80\x80\x80\x80\0", b"\x80", b""], INT),
    ),
    (
        "long",
        [b"\0", LEAST, b"\xfe" + b"\xff" * 8 + b"\1", b"\x80" * 9 + b"\0"],
        {b"\xff" * 9 + b"\2": LONG, b"\xff" * 9 + b"\x7f": LONG, b"\x80" * 10 + b"\0": LONG, b"\x80": LONG},
    ),
    ("float", [struct.pack("<f", 3.4e38)], {struct.pack("<f", float("inf")): SPECIAL, b"\0\0\0": CUT}),
    (
        "double",
        [struct.pack("<d", -0.0)],
        {struct.pack("<d", float("nan")): SPECIAL, struct.pack("<d", float("-inf")) + b"\0": LEFT, b"\0" * 7: CUT},
    ),
    ("bytes", [b"\0", b"\4\xff\0"], {b"\1": LENGTH, LEAST: LENGTH, b"\4a": CUT}),
    ("string", [b"\0", b"\4\xc3\xa9"], {b"\3": LENGTH, b"\2\xff": UTF8, b"\6\xed\xa0\x80": UTF8, b"\4a": CUT}),
    (FIXED, [b"\xff\0"], {b"\0": CUT, b"\0\0\0": LEFT}),
    (LEVEL, [b"\0", b"\2", b"\x82\0"], {b"\1": SYMBOL, b"\3": SYMBOL, b"\4": SYMBOL, b"\x80\x80\x80\x80\x80\0": INT}),
    (
        ["null", "boolean", LEVEL],
        [b"\0", b"\2\1", b"\4\2", b"\x84\0\2"],
        {
            b"\1\1": BRANCH, b"\3\1": BRANCH, b"\6\1": BRANCH, b"\2\2": BOOLEAN, b"\4\4": SYMBOL,
            b"\x80\x80\x80\x80\x80\0": INT,
        },
    ),
    (
        INTS,
        [b"\0", b"\4\2\2\0", b"\2\2\2\2\0", b"\3\4\2\2\0", b"\1\2\2\2\6\0"],
        {
            b"\4\2": COUNT, b"\4\2\x80": INT,
            b"\3\2\2\2\0": SIZE, b"\3\6\2\2\0": SIZE, b"\3\3\2\2\0": SIZE, b"\3\x7e\2\2\0": SIZE,
            LEAST + b"\0\0": COUNT, b"\x7e\2\0": COUNT, b"\2\2": LONG, b"\0\0": LEFT, b"\1\2\x80\0\0": SIZE,
        },
    ),
    (NESTED, [b"\2\2\2\0\0", b"\4\0\1\2\2\0\0"], {b"\2\3\6\2\2\0\0": SIZE}),
    (
        MAP,
        [b"\0", b"\4\2a\2\2b\2\0", b"\1\6\2a\2\2\2b\2\0"],
        {
            b"\4\2a\2\2a\4\0": TWICE, b"\2\2a\2\2\2a\2\0": TWICE, b"\2\2\xff\2\0": UTF8, b"\2\3a\2\0": LENGTH,
            b"\1\4\2a\2\0": SIZE,
        },
    ),
    ({"type": "array", "items": MAP}, [b"\4\2\2a\2\0\2\2a\2\0\0"], {b"\2\4\2a\2\2a\2\0\0": TWICE}),
    (INNER, [b"\2\1"], {b"\2\2": f"{BOOLEAN} in b", b"\2": f"{CUT} in b"}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "good", "bad"), CASES, ids=[str(schema)[:30] for schema, _, _ in CASES])
def test_bytes_that_are_and_are_no_value(schema: Schema, good: list[bytes], bad: dict[bytes, str]) -> None:
    check = check_of(schema)
    assert {record: fault(check, record) for record in good} == dict.fromkeys(good, "")
    assert {record: fault(check, record) for record in bad} == bad


def test_a_fault_names_its_field_and_its_byte() -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "tags", "type": {"type": "array", "items": INNER}}]
    told = check_of({"type": "record", "name": "R", "fields": fields}).fault(b"\0\0\0\0\7\2\4\2\1\2\2\0", 5, "schema 7")
    assert told is not None
    assert told.detail == f"no record of schema 7: {BOOLEAN} in tags[].b, byte 10"


def test_a_number_that_is_not_finite_in_many_arrays() -> None:
    """JSON would have null for it, at any depth."""
    schema: Schema = "double"
    for _ in range(30):
        schema = {"type": "array", "items": schema}
    record = b"\2" * 30 + struct.pack("<d", float("nan")) + b"\0" * 30
    assert fault(check_of(schema), record).startswith(SPECIAL)


def test_a_schema_that_is_too_large_is_refused() -> None:
    """Each record has the one before twice."""
    node: Schema = "int"
    for n in range(30):
        fields = [{"name": "a", "type": node}, {"name": "b", "type": f"R{n - 1}" if n else "int"}]
        node = {"type": "record", "name": f"R{n}", "fields": fields}
    with pytest.raises(ValueError, match="more than 200000 values"):
        check_of(node)


class NoValueError(Exception):
    """The reader of the specification found no value."""


@dataclass
class Reader:
    """Reads a record as the specification says, in plain Python, and writes it as a writer would."""

    record: bytes
    place: int = 0
    #: Whether any number had more bytes than it needs, or any block was not the only one, or had its size.
    unusual: bool = False
    text: str = ""
    written: bytearray = field(default_factory=bytearray)

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.record) - self.place:
            raise NoValueError
        self.place += size
        return self.record[self.place - size : self.place]

    def number(self, bits: int, *, write: bool = True) -> int:
        raw = b""
        while not raw or raw[-1] & 0x80:
            raw += self.take(1)
        total = sum((byte & 0x7F) << 7 * i for i, byte in enumerate(raw))
        if total >= 1 << bits or len(raw) > -(-bits // 7):
            raise NoValueError
        self.unusual |= len(raw) > 1 and raw[-1] == 0
        value = total >> 1 if total % 2 == 0 else -(total >> 1) - 1
        if write:
            self.written += spelled(value)
        return value

    def value(self, node: Schema) -> None:
        if isinstance(node, list):
            branch = self.number(32)
            if not 0 <= branch < len(node):
                raise NoValueError
            self.value(node[branch])
            return
        kind = node if isinstance(node, str) else node["type"]
        if isinstance(kind, dict | list):
            self.value(kind)
        elif kind in ("int", "long"):
            self.number(32 if kind == "int" else 64)
        elif kind == "record":
            for member in node["fields"]:
                self.value(member["type"])
        elif kind == "enum":
            if not 0 <= self.number(32) < len(node["symbols"]):
                raise NoValueError
        elif kind in ("array", "map"):
            self.blocks(node, kind)
        elif kind != "null":
            self.bytes_of(node, kind)

    def bytes_of(self, node: Schema, kind: str) -> None:
        if kind in ("string", "bytes"):
            raw = self.take(self.number(64))
        else:
            raw = self.take({"boolean": 1, "float": 4, "double": 8}.get(kind) or node["size"])
        self.written += raw
        try:
            self.text = raw.decode() if kind == "string" else ""
        except UnicodeDecodeError as error:
            raise NoValueError from error
        finite = kind not in ("float", "double") or math.isfinite(struct.unpack(f"<{kind[0]}", raw)[0])
        if not finite or (kind == "boolean" and raw[0] > 1):
            raise NoValueError

    def blocks(self, node: Schema, kind: str) -> None:
        before, self.written = self.written, bytearray()
        count, keys = 0, set()
        while items := self.number(64, write=False):
            self.unusual |= count > 0 or items < 0
            end = None
            if items < 0:
                size = self.number(64, write=False)
                end = self.place + size
            for _ in range(abs(items)):
                if kind == "map":
                    self.value("string")
                    if self.text in keys:
                        raise NoValueError
                    keys.add(self.text)
                self.value(node["items"] if kind == "array" else node["values"])
            if end not in (None, self.place):
                raise NoValueError
            count += abs(items)
        inside, self.written = self.written, before
        self.written += (spelled(count) + inside if count else b"") + b"\0"


def spelled(value: int) -> bytes:
    raw, rest = b"", value * 2 if value >= 0 else -value * 2 - 1
    while rest >= 0x80:
        raw, rest = raw + bytes([rest & 0x7F | 0x80]), rest >> 7
    return raw + bytes([rest])


def read(schema: Schema, record: bytes) -> Reader | None:
    """What the specification says of a record; None if it is none."""
    reader = Reader(record)
    try:
        reader.value(schema)
    except NoValueError:
        return None
    return reader if reader.place == len(record) else None


LOGICAL = [("bytes", "decimal"), ("int", "date"), ("long", "timestamp-micros"), ("string", "uuid")]


@dataclass
class Drawn:
    """Schemas and values of them, at random."""

    dice: random.Random
    names: int = 0

    def schema(self, depth: int) -> Schema:
        kinds = ["int", "long", "boolean", "float", "double", "string", "bytes", "enum", "fixed", "logical"]
        kinds += ["optional", "union", "array", "map", "record"] if depth else []
        kind = self.dice.choice(kinds)
        self.names += 1
        name = f"N{self.names}"
        match kind:
            case "enum":
                return {"type": "enum", "name": name, "symbols": ["A", "B", "C"][: self.dice.randint(1, 3)]}
            case "fixed":
                return {"type": "fixed", "name": name, "size": self.dice.randint(1, 4)}
            case "logical":
                base, logical = self.dice.choice(LOGICAL)
                return {"type": base, "logicalType": logical} | (
                    {"precision": 9, "scale": 2} if base == "bytes" else {}
                )
            case "optional":
                branches = ["null", self.simple(depth)]
                return branches if self.dice.random() < 0.7 else branches[::-1]
            case "union":
                return self.dice.choice(
                    [["null", "boolean", "string"], ["long", "null", {"type": "array", "items": "int"}]]
                )
            case "array":
                return {"type": "array", "items": self.schema(depth - 1)}
            case "map":
                return {"type": "map", "values": self.schema(depth - 1)}
            case "record":
                return self.record(name, depth)
        return kind

    def simple(self, depth: int) -> Schema:
        """A type that is no union."""
        while isinstance(schema := self.schema(depth - 1), list):
            pass
        return schema

    def record(self, name: str, depth: int) -> Schema:
        fields = [{"name": f"f{n}", "type": self.schema(depth - 1)} for n in range(self.dice.randint(1, 4))]
        return {"type": "record", "name": name, "fields": fields}

    def envelope(self) -> Schema:
        """Debezium's, with a row of any columns."""
        source = {"db": "string", "table": ["null", "string"], "file": "string", "pos": "long", "row": "int"}
        place = {"type": "record", "name": "Source", "fields": [{"name": n, "type": t} for n, t in source.items()]}
        row = self.record("Value", 3)
        fields = {
            "before": ["null", row],
            "after": ["null", row],
            "source": place,
            "op": "string",
            "ts_ms": ["null", "long"],
        }
        return {"type": "record", "name": "Envelope", "fields": [{"name": n, "type": t} for n, t in fields.items()]}

    def value(self, node: Schema) -> Any:  # noqa: ANN401 - any value
        dice = self.dice
        if isinstance(node, list):
            return self.value(dice.choice(node))
        kind = node if isinstance(node, str) else node["type"]
        match kind:
            case "int" | "long":
                return dice.choice(
                    [0, -1, 63, 64, 300, -(2**31), 2**31 - 1, *([2**63 - 1, -(2**63)] if kind == "long" else [])]
                )
            case "boolean":
                return dice.random() < 0.5
            case "float" | "double":
                return dice.choice([0.0, -0.5, 1.5])
            case "string":
                return dice.choice(["", "a", "müsli", "\U0001f9ea"])
            case "bytes":
                return dice.randbytes(dice.randrange(4))
            case "enum":
                return dice.choice(node["symbols"])
            case "fixed":
                return dice.randbytes(node["size"])
            case "array":
                return [self.value(node["items"]) for _ in range(dice.randrange(3))]
            case "map":
                return {
                    name: self.value(node["values"]) for name in dice.sample(["", "a", "b", "é"], dice.randrange(3))
                }
            case "record":
                return {member["name"]: self.value(member["type"]) for member in node["fields"]}
        return None


def once(node: Schema, met: set[str]) -> Schema:
    """The schema with its named types defined where they are met first."""
    if isinstance(node, list):
        return [once(part, met) for part in node]
    if isinstance(node, dict):
        if node["type"] in ("record", "fixed", "enum"):
            if node["name"] in met:
                return node["name"]
            met.add(node["name"])
        return {
            key: once(part, met) if key in ("type", "items", "values", "fields") else part for key, part in node.items()
        }
    return node


def changed(dice: random.Random, record: bytes) -> list[bytes]:
    """Each byte in turn as some others, the record cut at each byte, and with bytes behind it or put in."""
    others = [
        record[:i] + bytes([byte]) + record[i + 1 :] for i in range(len(record)) for byte in near(dice, record[i])
    ]
    cut = [record[:size] for size in range(len(record))]
    longer = [record[:i] + bytes([dice.choice([0, 1, 2, 0x80])]) + record[i:] for i in range(len(record) + 1)]
    return others + cut + longer


def near(dice: random.Random, byte: int) -> set[int]:
    return {byte ^ 1, byte ^ 2, byte ^ 0x80, 0, 1, 2, 3, 0xFF, dice.randrange(256)} - {byte}


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_every_changed_record_is_refused_or_is_a_record(seed: int) -> None:
    """A record that is accepted is written again with the same bytes, unless its form is legal and unusual."""
    drawn, verdicts = Drawn(random.Random(seed)), {"sound": 0, "unusual": 0, "refused": 0}
    for _ in range(12):
        schema = drawn.envelope()
        plain = without_logical_types(schema)
        parsed = fastavro.parse_schema(once(plain, set()))
        check = avro_check(parsed)
        for _ in range(3):
            out = io.BytesIO()
            fastavro.schemaless_writer(out, parsed, drawn.value(plain))
            good = out.getvalue()
            assert fault(check, good) == ""
            for record in changed(drawn.dice, good):
                expected = read(plain, record)
                assert (fault(check, record) == "") == (expected is not None), record
                if expected is None:
                    verdicts["refused"] += 1
                    continue
                verdicts["unusual" if expected.unusual else "sound"] += 1
                again = io.BytesIO()
                fastavro.schemaless_writer(again, parsed, fastavro.schemaless_reader(io.BytesIO(record), parsed, None))
                assert again.getvalue() == bytes(expected.written)
                assert expected.unusual or again.getvalue() == record
    assert verdicts["sound"] > 1000
    assert verdicts["unusual"] > 20
    assert verdicts["refused"] > 5000
