from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from demo.gone_columns import gone_columns
from demo.recordings import RECORDINGS, read_recording
from demo.truth import TruthColumn, TruthTable, load_truth
from demo.verdict import judge
from tests.demo.lake_from_truth import lake_table

TABLES = [
    *load_truth(RECORDINGS / "shop" / "truth", "shop"),
    *load_truth(RECORDINGS / "bank" / "truth", "bank"),
]
KEYED = [t for t in TABLES if t.key]


def named(name: str) -> TruthTable:
    return next(t for t in TABLES if str(t) == name)


def replaced(table: pa.Table, column: str, row: int, value: Any) -> pa.Table:  # noqa: ANN401
    values = table.column(column).to_pylist()
    assert values[row] != value
    values[row] = value
    array = pa.array(values, table.column(column).type)
    return table.set_column(table.column_names.index(column), column, array)


@pytest.mark.parametrize("truth", TABLES, ids=str)
def test_the_truth_equals_itself(truth: TruthTable) -> None:
    verdict = judge(truth, lake_table(truth))
    assert verdict.equal
    assert verdict.cells == len(truth.rows) * len(truth.columns)


@pytest.mark.parametrize("truth", TABLES, ids=str)
def test_any_single_cell_that_differs_is_found(truth: TruthTable) -> None:
    """The control: one cell of every column in turn is made NULL, or is filled where it was NULL."""
    lake = lake_table(truth)
    for column in truth.columns:
        values = lake.column(column.name).to_pylist()
        row = len(values) // 2
        other = next((v for v in values if v != values[row]), None) if values[row] is None else None
        if other is values[row]:
            continue
        verdict = judge(truth, replaced(lake, column.name, row, other))
        assert not verdict.equal, column.name


@pytest.mark.parametrize("truth", KEYED, ids=str)
def test_the_order_of_rows_does_not_matter(truth: TruthTable) -> None:
    lake = lake_table(truth)
    assert judge(truth, lake.take(list(reversed(range(lake.num_rows))))).equal


CHANGES: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("shop.orders", "total", lambda v: v + v.__class__("0.01")),
    ("shop.orders", "placed_at", lambda v: v.replace(microsecond=(v.microsecond + 1) % 1_000_000)),
    ("shop.orders", "pick_time", lambda v: v + 1),
    ("shop.orders", "doc", lambda v: v + b"\0"),
    ("shop.orders", "weight", lambda v: v * (1 + 2**-52)),
    ("shop.orders", "attrs", lambda v: v + " "),
    ("shop.customers", "name", lambda v: v + " "),
    ("shop.customers", "vip", lambda v: v + 2),
    ("bank.accounts", "balance", lambda v: -v),
]


@pytest.mark.parametrize(("table", "column", "change"), CHANGES, ids=[f"{t}.{c}" for t, c, _ in CHANGES])
def test_the_smallest_change_of_a_value_is_found(table: str, column: str, change: Callable[[Any], Any]) -> None:
    truth, lake = named(table), lake_table(named(table))
    values = lake.column(column).to_pylist()
    row = next(i for i, v in enumerate(values) if v)
    verdict = judge(truth, replaced(lake, column, row, change(values[row])))
    assert not verdict.equal
    assert verdict.differences[column].count == 1
    assert verdict.cells == len(truth.rows) * len(truth.columns) - 1


def test_missing_extra_and_repeated_rows_are_found() -> None:
    truth = named("shop.stock")
    lake = lake_table(truth)
    missing = judge(truth, lake.slice(1))
    assert (missing.equal, missing.missing_rows, missing.extra_rows) == (False, 1, 0)
    twice = judge(truth, pa.concat_tables([lake, lake.slice(3, 1)]))
    assert (twice.equal, twice.duplicate_rows) == (False, 1)
    extra = judge(truth, pa.concat_tables([lake, replaced(lake.slice(3, 1), "sku", 0, "SKU-none")]))
    assert (extra.equal, extra.extra_rows) == (False, 1)


def test_a_table_without_a_key_is_compared_as_a_multiset() -> None:
    truth = named("shop.audit_log")
    lake = lake_table(truth)
    assert judge(truth, lake.take(list(reversed(range(lake.num_rows))))).equal
    assert not judge(truth, pa.concat_tables([lake, lake.slice(0, 1)])).equal
    assert not judge(truth, lake.slice(1)).equal


def test_equal_rows_of_a_table_without_a_key_count_each() -> None:
    truth = TruthTable("d", "t", (TruthColumn("n", "int(11)"),), (), [("1",), ("1",), ("2",)])
    assert judge(truth, pa.table({"n": pa.array([2, 1, 1], pa.int32())})).equal
    assert not judge(truth, pa.table({"n": pa.array([2, 2, 1], pa.int32())})).equal


def test_columns_must_be_there_once_and_of_the_right_type() -> None:
    truth = named("shop.stock")
    lake = lake_table(truth)
    assert judge(truth, lake.drop_columns(["rev"])).mistakes == ["column rev is 0 times in the lake"]
    assert judge(truth, lake.append_column("more", lake.column("qty"))).mistakes == ["column more is only in the lake"]
    assert judge(truth, lake.append_column("dt", lake.column("qty")), derived={"dt"}).equal
    text = lake.set_column(lake.column_names.index("qty"), "qty", lake.column("qty").cast(pa.string()))
    assert judge(truth, text).mistakes == ["column qty: int(11) is string in the lake"]


def test_lake_names_may_differ() -> None:
    truth = TruthTable("d", "t", (TruthColumn("a b", "int(11)"),), ("a b",), [("1",)])
    assert judge(truth, pa.table({"a_b": pa.array([1], pa.int32())}), lake_name=lambda n: n.replace(" ", "_")).equal


GONE = {"shop.orders": frozenset({"note", "legacy_flag"})}


def recorded(truth: TruthTable) -> Path:
    variant = "schema" if truth.database == "shop" else "plain"
    prefix = f"{truth.database}_{variant}"
    return RECORDINGS / truth.database / variant / f"{prefix}.{truth}.jsonl.gz"


@pytest.mark.parametrize("truth", TABLES, ids=str)
def test_columns_that_are_no_more_are_those_the_recording_is_known_for(truth: TruthTable) -> None:
    assert gone_columns(truth, read_recording(recorded(truth))) == GONE.get(str(truth), frozenset())


def test_columns_that_are_no_more_are_named_apart() -> None:
    truth = named("shop.orders")
    lake = lake_table(truth)
    with_old = lake.append_column("legacy_flag", pa.nulls(lake.num_rows, pa.int32()))
    verdict = judge(truth, with_old, gone=gone_columns(truth, read_recording(recorded(truth))))
    assert (verdict.equal, verdict.gone_columns) == (True, ["legacy_flag"])
    assert not judge(truth, with_old).equal
