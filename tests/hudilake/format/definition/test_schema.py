"""Arrow schemas as Hudi's Avro, compared with what Hudi itself wrote."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from hudilake.errors import UnsupportedError
from hudilake.format.definition.avro_types import decimal_bytes
from hudilake.format.definition.schema import (
    META_FIELDS,
    arrow_schema,
    avro_schema,
    check_evolution,
    sanitize_name,
    value_schema,
)
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.hudilake.lake import SCHEMA
from tests.paths import GOLDEN


def test_hudis_own_schema_byte_for_byte() -> None:
    table = HudiTable.open(open_storage((GOLDEN / "tbl_hudi120").as_uri()))
    text = table.extra_metadata("schema")
    assert text is not None
    assert arrow_schema(text) == table.schema
    assert avro_schema(table.schema, "golden", with_meta=False) == text


def test_meta_fields_come_first_and_go_again() -> None:
    text = avro_schema(SCHEMA, "t1", with_meta=True)
    assert arrow_schema(text).names == [*META_FIELDS, *SCHEMA.names]
    assert value_schema(arrow_schema(text)) == SCHEMA
    assert json.loads(text)["namespace"] == "hoodie.t1"


@pytest.mark.parametrize(
    "kind",
    [
        pa.bool_(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.date32(),
        pa.time64("us"),
        pa.timestamp("us", tz="UTC"),
        pa.timestamp("ms", tz="UTC"),
        pa.timestamp("us"),
        pa.decimal128(38, 0),
        pa.decimal128(38, 38),
        pa.decimal128(1, 1),
    ],
)
@pytest.mark.parametrize("nullable", [True, False])
def test_types_round_trip(kind: pa.DataType, nullable: bool) -> None:
    schema = pa.schema([pa.field("a", kind, nullable=nullable), pa.field("b", kind, nullable=nullable)])
    assert arrow_schema(avro_schema(schema, "t", with_meta=False)) == schema


@pytest.mark.parametrize("kind", [pa.uint64(), pa.list_(pa.uint64()), pa.decimal256(60, 2), pa.timestamp("ns")])
def test_other_types_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="column a"):
        avro_schema(pa.schema([pa.field("a", kind)]), "t", with_meta=False)


def test_names_avro_has_no_place_for() -> None:
    assert sanitize_name("9 lives-é") == "____lives____"
    with pytest.raises(UnsupportedError, match="Avro name"):
        avro_schema(pa.schema([pa.field("a b", pa.int32())]), "t", with_meta=False)


@pytest.mark.parametrize("precision", range(1, 39))
def test_decimal_bytes(precision: int) -> None:
    size, greatest = decimal_bytes(precision), 10**precision - 1
    assert -(1 << 8 * size - 1) <= -greatest
    assert greatest < 1 << 8 * size - 1
    assert size == 1 or greatest >= 1 << 8 * (size - 1) - 1


def _one(kind: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field("a", kind)])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.int32(), pa.int64()),
        (pa.int64(), pa.string()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(10, 2), pa.decimal128(14, 4)),
        (pa.int8(), pa.int32()),
        (pa.string(), pa.string()),
    ],
)
def test_widening_is_allowed_and_narrowing_is_not(old: pa.DataType, new: pa.DataType) -> None:
    check_evolution(_one(old), _one(new))
    if old not in (new, pa.int8()):
        with pytest.raises(UnsupportedError, match="cannot change"):
            check_evolution(_one(new), _one(old))


def test_new_columns_must_be_nullable() -> None:
    old = _one(pa.int32())
    check_evolution(old, old.append(pa.field("b", pa.int32())))
    check_evolution(old.append(pa.field("b", pa.int32())), old)
    with pytest.raises(UnsupportedError, match="not nullable"):
        check_evolution(old, old.append(pa.field("b", pa.int32(), nullable=False)))
    with pytest.raises(UnsupportedError, match="cannot change"):
        check_evolution(_one(pa.decimal128(10, 2)), _one(pa.decimal128(10, 4)))
