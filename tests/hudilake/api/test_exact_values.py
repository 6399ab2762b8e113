"""A table holds the values that it was given, or refuses the write: Arrow alone cuts, rounds and overflows."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

import hudilake
from tests.hudilake.api.tables import keyed, row

DAY = datetime(2024, 2, 29)  # noqa: DTZ001 - a column without a zone
NOON = DAY + timedelta(hours=12)
FLOATS = pa.map_(pa.string(), pa.float32())
PAIR = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.date32()))])


def table_of(path: Path, kind: pa.DataType) -> hudilake.Table:
    schema = pa.schema({"id": pa.int64(), "v": kind, "o": pa.int64()})
    return hudilake.create_table(str(path / "t"), schema, key="id", order_by="o", buckets=1)


def held(table: hudilake.Table) -> list[Any]:
    return [found["v"] for found in table.scan(["id", "v"]).to_arrow().sort_by("id").to_pylist()]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1.5, pa.int64()),
        (np.float32(2.5), pa.int32()),
        (1 << 63, pa.int64()),
        (NOON, pa.date32()),
        (pd.Timestamp("2024-02-29 00:00:00.000000001"), pa.timestamp("us")),
        (pd.NaT, pa.timestamp("us")),
        (1e300, pa.float32()),
        ("\ud800", pa.string()),
        ("ab", pa.list_(pa.string())),
        ([1, 2.5], pa.list_(pa.int64())),
        ({"a": 1.5}, PAIR),
        ([("a", 1.5)], PAIR),
        ({"b": [None, NOON]}, PAIR),
        ({"x": 1e39}, FLOATS),
        ([("x", 1e39)], FLOATS),
        (7, PAIR),
        (7, FLOATS),
    ],
)
def test_a_value_of_python_that_arrow_would_change(tmp_path: Path, value: object, kind: pa.DataType) -> None:
    table = table_of(tmp_path, kind)
    with pytest.raises(hudilake.ConfigError, match="does not fit"):
        table.upsert([{"id": 0, "v": None, "o": 1}, {"id": 1, "v": value, "o": 1}])
    assert table.history() == []


def test_a_key_with_a_fraction_is_no_other_row(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1)])
    for write in (table.upsert, table.delete, table.erase):
        with pytest.raises(hudilake.ConfigError, match=r"1\.9 is no int64"):
            write([{**row(1, 2), "id": 1.9}])
    assert table.count() == 1


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([0.5, 1e300]), pa.float32()),
        (pa.array(["inf", "1e400"]), pa.float64()),
        (pa.array([2.675]), pa.decimal128(8, 2)),
        (pa.array([0.1, math.nan]), pa.decimal128(8, 2)),
        (pa.array([float(1 << 53)]), pa.decimal128(38, 0)),
        (pa.array([NOON]), pa.date32()),
        (pa.array([NOON], pa.timestamp("us", "Europe/Berlin")), pa.date32()),
        (pa.array([1, 2]), pa.bool_()),
        (pa.array([math.nan]), pa.bool_()),
        (pa.array([None, [0.5, None, 1e39]]), pa.list_(pa.float32())),
        (pa.array([[0.1, 2.675]], pa.list_(pa.float64(), 2)), pa.list_(pa.decimal128(8, 2))),
        (pa.array([{"b": None}, {"a": 1, "b": [NOON]}]), PAIR),
        (pa.array([None, [("x", 1e39)]], pa.map_(pa.string(), pa.float64())), FLOATS),
        (pa.array([1e39]).dictionary_encode(), pa.float32()),
    ],
)
def test_a_value_of_arrow_that_its_cast_would_change(tmp_path: Path, values: pa.Array, kind: pa.DataType) -> None:
    table = table_of(tmp_path, kind)
    ids = pa.array(range(len(values)), pa.int64())
    with pytest.raises(hudilake.ConfigError, match="the column v does not fit the type"):
        table.upsert(pa.table({"id": ids, "v": values, "o": ids}))
    assert table.history() == []


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (
            pa.array([0.1, 2.5, 1e15, None]),
            pa.decimal128(38, 20),
            [Decimal("0.1"), Decimal("2.5"), Decimal(10**15), None],
        ),
        (pa.array([Decimal(1) / 3]), pa.float64(), [1 / 3]),
        (pa.array([0.1, math.inf, math.nan, -0.0]), pa.float32(), [float(np.float32(0.1)), math.inf, math.nan, -0.0]),
        (pa.array(["-Infinity", "1e308"]), pa.float64(), [-math.inf, 1e308]),
        (pa.array([DAY, None]), pa.date32(), [date(2024, 2, 29), None]),
        (pa.array([0.0, 1.0, None]), pa.bool_(), [False, True, None]),
        (pa.array(["x", "y", None, "z"]).dictionary_encode().slice(1), pa.string(), ["y", None, "z"]),
        (pa.array([{"a": 3, "b": [DAY]}, None]), PAIR, [{"a": 3, "b": [date(2024, 2, 29)]}, None]),
        (pa.array([[("x", 0.5)], None], pa.map_(pa.string(), pa.float64())), FLOATS, [[("x", 0.5)], None]),
    ],
)
def test_values_of_arrow_that_fit(tmp_path: Path, values: pa.Array, kind: pa.DataType, expected: list[Any]) -> None:
    table = table_of(tmp_path, kind)
    ids = pa.array(range(len(values)), pa.int64())
    table.upsert(pa.table({"id": ids, "v": values, "o": ids}))
    assert str(held(table)) == str(pa.array(expected, kind).to_pylist())  # NaN equals nothing


def test_values_of_python_that_fit(tmp_path: Path) -> None:
    berlin = timezone(timedelta(hours=1))
    for at, (value, kind, expected) in enumerate(
        [
            (2.0, pa.int64(), 2),
            (DAY, pa.date32(), date(2024, 2, 29)),
            (datetime(2024, 2, 29, 1, tzinfo=berlin), pa.timestamp("us", "UTC"), datetime(2024, 2, 29, tzinfo=UTC)),
            (math.inf, pa.float32(), math.inf),
            ([("a", 1), ("b", None)], PAIR, {"a": 1, "b": None}),
            ({"x": 0.5}, FLOATS, [("x", 0.5)]),
            ((1, None), pa.list_(pa.int64()), [1, None]),
        ]
    ):
        table = table_of(tmp_path / str(at), kind)
        table.upsert([{"id": 1, "v": value, "o": 1}])
        assert held(table) == [expected]


@pytest.mark.parametrize("write", ["upsert", "delete", "erase"])
def test_two_columns_of_one_name(tmp_path: Path, write: str) -> None:
    table = keyed(tmp_path / "t")
    rows = pa.table([[1], [2], ["d"], [1]], names=["id", "id", "day", "updated_at"])
    with pytest.raises(hudilake.ConfigError, match="two columns of the rows have the same name"):
        getattr(table, write)(rows)


def test_rows_that_are_null_as_a_whole(tmp_path: Path) -> None:
    with pytest.raises(hudilake.ConfigError, match="cannot be read"):
        keyed(tmp_path / "t").upsert(pa.array([row(1, 1), None]))


@pytest.mark.parametrize("kind", [pa.decimal128(5, -2), pa.decimal128(2, 5)])
def test_decimals_that_parquet_cannot_hold(tmp_path: Path, kind: pa.DataType) -> None:
    with pytest.raises(hudilake.UnsupportedError, match="column v has type decimal"):
        table_of(tmp_path, kind)
    assert not hudilake.table_exists(str(tmp_path / "t"))
