"""The judges themselves: they read a table that Hudi wrote, rightly, and notice one wrong cell."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.judges import hudi_rs
from tests.judges.agreement import assert_judges_agree, assert_same, read_ourselves
from tests.judges.hudi_spark import HudiSpark
from tests.judges.rows import canonical, canonical_value
from tests.paths import GOLDEN

TABLE = GOLDEN / "tbl_hudi120"


def expected_rows() -> list[dict[str, Any]]:
    """The golden table's rows as Hudi Spark read them when it was made; binary as hex, the rest as text."""
    rows: list[dict[str, Any]] = json.loads((GOLDEN / "tbl_hudi120_expected.json").read_text())["rows"]
    return rows


def test_what_makes_cells_equal() -> None:
    stamp = datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC)
    assert canonical_value(stamp) == "2024-02-29T12:00:00.000001+00:00"
    assert canonical_value(date(2024, 2, 29)) == "2024-02-29"
    assert canonical_value(bytearray(b"\x00\xff")) == canonical_value(b"\x00\xff") == "0x00ff"
    assert canonical_value(Decimal("1.10")) != canonical_value(Decimal("1.1"))
    assert canonical_value(-0.0) != canonical_value(0.0)
    assert canonical_value(float("nan")) == canonical_value(float("nan"))
    assert canonical_value(1) != canonical_value("1")
    assert canonical_value([1, None]) != canonical_value([None, 1])
    assert canonical_value([("b", 1), ("a", [2])]) == canonical_value([("a", [2]), ("b", 1)])
    assert canonical_value({"a": {"b": 1.5}}) != canonical_value({"a": {"b": Decimal("1.5")}})
    with pytest.raises(TypeError):
        canonical_value([{1}])


def test_rows_are_compared_as_multisets() -> None:
    assert canonical([{"a": 2, "b": None}, {"a": 1, "b": "x"}]) == canonical([{"b": "x", "a": 1}, {"b": None, "a": 2}])
    assert canonical([{"a": 1}, {"a": 1}]) != canonical([{"a": 1}])
    assert canonical([{"a": 1, "_hoodie_record_key": "1"}]) == [{"a": 1}]


def test_a_difference_names_the_row() -> None:
    with pytest.raises(AssertionError, match=r"(?s)gives 1 rows where 2 are expected.*missing.*'a': 2") as raised:
        assert_same("the reader", [{"a": 1}], [{"a": 1}, {"a": 2}])
    assert "'a': 1" not in str(raised.value)


def test_hudi_rs_and_ours_on_a_table_of_hudi() -> None:
    rows = read_ourselves(TABLE)
    assert len(rows) == len(expected_rows())
    assert_same("hudi-rs", hudi_rs.snapshot(TABLE), rows)


def test_one_wrong_cell_is_noticed() -> None:
    rows = read_ourselves(TABLE)
    name = next(f.name for f in rows.schema if pa.types.is_string(f.type) and not f.name.startswith("_hoodie_"))
    wrong = rows.to_pylist()
    wrong[0][name] = "another"
    with pytest.raises(AssertionError, match="'another'"):
        assert_judges_agree(TABLE, wrong)


@pytest.mark.spark
@pytest.mark.judge
def test_all_judges_on_a_table_of_hudi(hudi_spark: HudiSpark) -> None:
    assert_judges_agree(TABLE, read_ourselves(TABLE).to_pylist(), spark=hudi_spark)


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.judge
def test_time_travel_and_increments_on_a_table_of_hudi(hudi_spark: HudiSpark) -> None:
    instants = sorted({row["_hoodie_commit_time"] for row in read_ourselves(TABLE).to_pylist()})
    uri = str(TABLE)
    for instant in instants:
        assert_same(instant, hudi_spark.as_of(uri, instant), hudi_rs.as_of(uri, instant))
    assert_same("from the beginning", hudi_spark.incremental(uri, "0"), read_ourselves(TABLE))
    assert hudi_spark.read_optimized(uri)
