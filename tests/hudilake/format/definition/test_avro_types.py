"""Types between Arrow and Avro: what Hudi wrote comes back, and what is not known is refused."""

from __future__ import annotations

import json
import zipfile
from typing import Any

import pyarrow as pa
import pytest

from hudilake.errors import UnsupportedError
from hudilake.format.definition.avro_types import lost_field, read_only_type, widens
from hudilake.format.definition.properties import load_properties
from hudilake.format.definition.schema import arrow_schema, avro_schema, check_evolution
from tests.paths import DATA

POINT = pa.struct([("x", pa.int32()), ("price", pa.decimal128(10, 5))])
NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("tags", pa.list_(pa.string())),
        ("points", pa.list_(POINT)),
        ("lists", pa.list_(pa.list_(pa.field("element", pa.date32(), nullable=False)))),
        ("place", pa.struct([("city", pa.string()), ("at", pa.struct([("seen", pa.timestamp("us", "UTC"))]))])),
        ("by_name", pa.map_(pa.string(), POINT)),
        ("maps", pa.map_(pa.string(), pa.map_(pa.string(), pa.binary()))),
        ("four", pa.binary(4)),
    ]
)


def hudis_schema(name: str) -> str:
    """The schema in the properties of a table that Hudi Spark wrote."""
    with zipfile.ZipFile(DATA / "foreign" / f"{name}.zip") as archive:
        return load_properties(archive.read(f"{name}/.hoodie/hoodie.properties"))["hoodie.table.create.schema"]


def as_ours(kind: Any) -> Any:  # noqa: ANN401 - Avro JSON
    """Hudi's older order of unions in the newer one, which has defaults."""
    if isinstance(kind, list) and kind[-1:] == ["null"]:
        return ["null", as_ours(kind[0])]
    if isinstance(kind, list):
        return [as_ours(part) for part in kind]
    if isinstance(kind, dict):
        spelled = {name: as_ours(part) for name, part in kind.items()}
        return spelled | {"default": None} if isinstance(kind.get("type"), list) and "name" in kind else spelled
    return kind


def test_nested_types_come_back() -> None:
    text = avro_schema(NESTED, "t1", with_meta=False)
    assert arrow_schema(text) == NESTED
    assert arrow_schema(avro_schema(NESTED, "t1", with_meta=True)).names[5:] == NESTED.names


def test_names_are_those_of_hudi() -> None:
    theirs = hudis_schema("v8_complexkeygen_hivestyle")
    ours = avro_schema(arrow_schema(theirs), "v8_complexkeygen_hivestyle", with_meta=False)
    assert json.loads(ours) == as_ours(json.loads(theirs))


def test_a_type_may_be_named_where_it_is_used_again() -> None:
    record = {"type": "record", "name": "P", "namespace": "a.b", "fields": [{"name": "x", "type": "int"}]}
    further = [{"name": "two", "type": ["null", "P"]}, {"name": "three", "type": "a.b.P"}]
    fields = [{"name": "one", "type": record}, *further]
    outer = {"type": "record", "name": "R", "namespace": "a.b", "fields": fields}
    kind = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    assert [field.type for field in arrow_schema(json.dumps(outer))] == [kind] * 3
    with pytest.raises(UnsupportedError, match="column two has the Avro type Q"):
        arrow_schema(json.dumps(outer | {"fields": [fields[0], {"name": "two", "type": "Q"}]}))


@pytest.mark.parametrize(
    "kind",
    [
        pa.map_(pa.int64(), pa.string()),
        pa.struct([]),
        pa.struct([("a", pa.int32()), ("A", pa.int32())]),
        pa.struct([("not a name", pa.int32())]),
        pa.list_(pa.duration("us")),
        pa.list_view(pa.int32()),
    ],
)
def test_what_avro_cannot_hold_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedError):
        avro_schema(pa.schema([("c", kind)]), "t1", with_meta=False)


@pytest.mark.parametrize(
    "kind",
    [
        ["null", "int", "string"],
        {"type": "int", "logicalType": "time-millis"},
        {"type": "long", "logicalType": "timestamp-nanos"},
        {"type": "fixed", "name": "f", "size": 12, "logicalType": "duration"},
        {"type": "fixed", "name": "f", "size": 16, "logicalType": "uuid"},
        {"type": "enum", "name": "e", "symbols": ["A"]},
        {"type": "record", "name": "r", "fields": []},
    ],
)
def test_an_unknown_avro_type_is_refused_with_its_column(kind: object) -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "column_c", "type": kind}]}
    with pytest.raises(UnsupportedError, match="column_c"):
        arrow_schema(json.dumps(record))


def test_types_that_are_read_and_not_written() -> None:
    variant = json.loads(hudis_schema("variant_mor_avro"))
    assert read_only_type(variant) == "variant"
    assert read_only_type(json.loads(hudis_schema("v8_complexkeygen_hivestyle"))) is None


def field(kind: pa.DataType) -> pa.Schema:
    return pa.schema([("c", kind)])


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        (pa.list_(pa.int32()), pa.list_(pa.int64()), True),
        (pa.list_(pa.int64()), pa.list_(pa.int32()), False),
        (POINT, pa.struct([*POINT, ("y", pa.int32())]), True),
        (POINT, pa.struct([*POINT, pa.field("y", pa.int32(), nullable=False)]), False),
        (pa.struct([*POINT, ("y", pa.int32())]), POINT, False),
        (pa.map_(pa.string(), pa.float32()), pa.map_(pa.string(), pa.float64()), True),
        (pa.list_(pa.int32()), pa.list_(pa.field("element", pa.int32(), nullable=False)), False),
        (pa.list_(pa.int32()), pa.int32(), False),
        (pa.list_(pa.int32()), pa.list_(pa.string()), False),
        (pa.list_(pa.decimal128(10, 2)), pa.list_(pa.decimal128(12, 2)), False),
        (pa.int32(), pa.list_(pa.int32()), False),
        (pa.binary(4), pa.binary(5), False),
    ],
)
def test_nested_columns_change_as_flat_ones_do(old: pa.DataType, new: pa.DataType, *, allowed: bool) -> None:
    assert widens(old, new) is allowed
    if allowed:
        check_evolution(field(old), field(new))
    else:
        with pytest.raises(UnsupportedError, match="cannot change"):
            check_evolution(field(old), field(new))


def test_a_nested_field_without_a_place_is_found() -> None:
    more = pa.struct([*POINT, ("y", pa.int32())])
    assert lost_field(pa.list_(more), pa.list_(POINT), "c") == "c.y"
    by_name = [pa.map_(pa.string(), pa.struct([("p", kind)])) for kind in (more, POINT)]
    assert lost_field(*by_name) == "p.y"
    assert lost_field(pa.list_(POINT), pa.list_(more)) is None
