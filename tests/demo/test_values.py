from decimal import Decimal

import pyarrow as pa
import pytest

from demo.truth import Cell, TruthColumn, TruthTable
from demo.values import Value, lake_values, truth_values

BIG = 2**64 - 1
WIDE = "-" + "9" * 35 + "." + "9" * 30
CASES: list[tuple[str, Cell, Value, Value, pa.DataType]] = [
    # MySQL type, the server's text, its value, the lake's value, the lake's type
    ("tinyint(4)", "-128", -128, -128, pa.int32()),
    ("int(10) unsigned", "4294967295", 2**32 - 1, 2**32 - 1, pa.int64()),
    ("bigint(20) unsigned", str(BIG), BIG, Decimal(BIG), pa.decimal128(20, 0)),
    ("year(4)", "2155", 2155, 2155, pa.int32()),
    ("decimal(5,2)", "-0.10", Decimal("-0.10"), Decimal("-0.10"), pa.decimal128(5, 2)),
    ("decimal(65,30)", WIDE, Decimal(WIDE), WIDE, pa.string()),
    ("double", "-0", -0.0, -0.0, pa.float64()),
    ("double", "1e-300", 1e-300, 1e-300, pa.float64()),
    ("date", "9999-12-31", 2932896, 2932896, pa.date32()),
    ("date", "0001-01-01", -719162, -719162, pa.date32()),
    ("datetime", "1969-12-31 23:59:59", -1_000_000, -1_000_000, pa.timestamp("us", tz="UTC")),
    ("datetime(3)", "1970-01-01 00:00:01.002", 1_002_000, 1_002_000, pa.timestamp("us", tz="UTC")),
    ("timestamp(6)", "9999-12-31 23:59:59.999999", 253402300799999999, 253402300799999999, pa.timestamp("us", "UTC")),
    ("time(3)", "-838:59:59.000", -3020399000000, -3020399000000, pa.int64()),
    ("time", "00:00:01", 1_000_000, 1_000_000, pa.int64()),
    ("bit(1)", b"\x01", True, True, pa.bool_()),
    ("bit(10)", b"\x02\xff", b"\x02\xff", b"\x02\xff", pa.binary()),
    ("binary(3)", b"a\0\0", b"a\0\0", b"a\0\0", pa.binary()),
    ("blob", "text", b"text", b"text", pa.large_binary()),
    ("point", b"\0\0\0\0\1", b"\0\0\0\0\1", b"\0\0\0\0\1", pa.binary()),
    ("enum('a','b')", "b", "b", "b", pa.string()),
    ("json", '{"a": 1}', '{"a": 1}', '{"a": 1}', pa.large_string()),
    ("text", "", "", "", pa.string()),
    ("text", None, None, None, pa.string()),
]


@pytest.mark.parametrize(
    ("kind", "text", "expected", "lake", "lake_type"), CASES, ids=[f"{c[0]} {c[1]!r}" for c in CASES]
)
def test_both_sides_have_one_meaning(
    kind: str, text: Cell, expected: Value, lake: Value, lake_type: pa.DataType
) -> None:
    column = TruthColumn("c", kind)
    table = TruthTable("d", "t", (column,), (), [(text,)])
    stored = pa.array([lake], pa.int32() if lake_type == pa.date32() else None)
    stored = stored if isinstance(lake, Decimal) else stored.cast(lake_type)
    assert repr(truth_values(table, 0)) == repr([expected])
    assert lake_values(pa.chunked_array([stored]), column) == truth_values(table, 0)


WRONG = [
    ("int(11)", pa.string()),
    ("int(11)", pa.bool_()),
    ("bigint(20) unsigned", pa.int64()),
    ("decimal(5,2)", pa.float64()),
    ("decimal(65,30)", pa.decimal128(38, 30)),
    ("float", pa.decimal128(20, 4)),
    ("double", pa.float32()),
    ("date", pa.timestamp("us")),
    ("datetime", pa.int64()),
    ("time", pa.time64("us")),
    ("bit(1)", pa.binary()),
    ("bit(8)", pa.bool_()),
    ("blob", pa.string()),
    ("json", pa.binary()),
]


@pytest.mark.parametrize(("kind", "lake_type"), WRONG)
def test_a_lake_type_that_cannot_carry_the_source_type_is_refused(kind: str, lake_type: pa.DataType) -> None:
    with pytest.raises(TypeError, match="in the lake"):
        lake_values(pa.chunked_array([pa.nulls(1, lake_type)]), TruthColumn("c", kind))


def test_a_float_is_compared_by_its_exact_value() -> None:
    column = TruthColumn("f", "float")
    exact = TruthTable("d", "t", (column,), (), [("3.40282e38",)], {"f": ["3.4028234663852886e38"]})
    stored = pa.chunked_array([pa.array([3.4028234663852886e38], pa.float32())])
    assert truth_values(exact, 0) == lake_values(stored, column)
    rounded = TruthTable("d", "t", (column,), (), [("0.1",)], {"f": [None]})
    assert truth_values(rounded, 0) == lake_values(pa.chunked_array([pa.array([0.1], pa.float32())]), column)
    wide = pa.array([0.1], pa.float32()).cast(pa.float64())  # a column that was DOUBLE stays so in the lake
    assert truth_values(rounded, 0) == lake_values(pa.chunked_array([wide]), column)
    assert truth_values(rounded, 0) != lake_values(pa.chunked_array([pa.array([0.1], pa.float64())]), column)


@pytest.mark.parametrize(("nullable", "expected"), [(True, None), (False, 0)])
@pytest.mark.parametrize("kind", ["date", "datetime", "timestamp"])
def test_zero_dates_are_what_the_connector_makes_of_them(kind: str, nullable: bool, expected: int | None) -> None:
    text = "0000-00-00" if kind == "date" else "0000-00-00 00:00:00"
    table = TruthTable("d", "t", (TruthColumn("c", kind, nullable),), (), [(text,)])
    assert truth_values(table, 0) == [expected]


def test_an_unknown_type_is_an_error() -> None:
    with pytest.raises(ValueError, match="not known to the verdict"):
        truth_values(TruthTable("d", "t", (TruthColumn("c", "vector(3)"),), (), [("1",)]), 0)
