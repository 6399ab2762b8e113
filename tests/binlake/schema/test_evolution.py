"""How a lake table's schema grows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from binlake.schema.rules.evolution import evolved
from binlake.settings.schema_changes import SchemaChangeSettings
from hudilake.errors import UnsupportedError

STAMP = pa.timestamp("us", tz="UTC")
BASE = pa.schema([("id", pa.int64()), ("qty", pa.int32()), ("price", pa.decimal128(10, 2))])


def one(kind: pa.DataType) -> pa.Schema:
    """A schema of one column."""
    return pa.schema([("c", kind)])


def test_what_holds_everything_stays_itself() -> None:
    assert evolved(BASE, BASE) is BASE
    assert evolved(BASE, pa.schema([("price", pa.decimal128(10, 2)), ("id", pa.int64())])) is BASE
    assert evolved(BASE, pa.schema([("qty", pa.int8()), ("price", pa.decimal128(6, 1))])) is BASE


def test_new_columns_come_last_and_nullable() -> None:
    incoming = pa.schema([pa.field("a", pa.string(), nullable=False), pa.field("id", pa.int64()), pa.field("b", STAMP)])
    grown = evolved(BASE, incoming)
    assert grown.names == ["id", "qty", "price", "a", "b"]
    assert all(field.nullable for field in grown)


@pytest.mark.parametrize(
    ("known", "incoming", "result"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.decimal128(10, 2), pa.decimal128(14, 2), pa.decimal128(14, 2)),
        (pa.decimal128(10, 2), pa.decimal128(14, 4), pa.decimal128(14, 4)),
        (pa.decimal128(10, 4), pa.decimal128(12, 2), pa.decimal128(14, 4)),
        (pa.decimal128(38, 2), pa.decimal128(38, 2), pa.decimal128(38, 2)),
    ],
    ids=str,
)
def test_widening(known: pa.DataType, incoming: pa.DataType, result: pa.DataType) -> None:
    assert evolved(one(known), one(incoming)) == one(result)


@pytest.mark.parametrize(
    ("known", "incoming"),
    [
        (pa.int64(), pa.string()),
        (pa.string(), pa.int64()),
        (pa.int32(), pa.float64()),
        (pa.decimal128(38, 0), pa.decimal128(38, 2)),
        (pa.decimal128(20, 0), pa.int64()),
        (STAMP, pa.date32()),
        (pa.binary(), pa.string()),
        (pa.bool_(), pa.binary()),
    ],
    ids=str,
)
def test_types_without_a_common_one(known: pa.DataType, incoming: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="column 'c' was"):
        evolved(one(known), one(incoming))


def test_what_rows_bring_is_refused_where_the_policy_says_so() -> None:
    with pytest.raises(UnsupportedError, match="column 'new' is new"):
        evolved(BASE, one(pa.int64()).set(0, pa.field("new", pa.int64())), SchemaChangeSettings(add="refuse"))
    with pytest.raises(UnsupportedError, match=r"schema_changes.widen is refuse"):
        evolved(one(pa.int32()), one(pa.int64()), SchemaChangeSettings(widen="refuse"))
    assert evolved(one(pa.int64()), one(pa.int32()), SchemaChangeSettings(narrow="refuse")) == one(pa.int64())


@pytest.mark.parametrize(("known", "incoming"), [(pa.int32(), pa.string()), (pa.string(), pa.int64())], ids=str)
def test_whole_numbers_become_text_where_the_policy_says_so(known: pa.DataType, incoming: pa.DataType) -> None:
    assert evolved(one(known), one(incoming), SchemaChangeSettings(convert="string")) == one(pa.string())
    with pytest.raises(UnsupportedError):
        evolved(one(pa.float64()), one(pa.string()), SchemaChangeSettings(convert="string"))
