"""What a plan says of the clusterings that laid its files out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hudilake.errors import CorruptDataError
from hudilake.format.layout.order import ORDER_KEY, Order, order_extra, recorded_order
from hudilake.policies import OrderPolicy
from hudilake.read import TableReader
from tests.hudilake.golden_kinds import extracted
from tests.hudilake.services.advice.tables import file_table

ORDER = Order(OrderPolicy(columns=("n", "m"), curve="z_order"), seed=3)


def test_a_recorded_order_is_read_again() -> None:
    assert recorded_order(order_extra(ORDER)) == ORDER
    assert order_extra(None) == {}
    assert recorded_order({}) is None
    for wrong in ("", "[]", "{}", '{"order_by": {"columns": []}, "seed": 1}'):
        with pytest.raises(CorruptDataError, match="names no order"):
            recorded_order({ORDER_KEY: wrong})


def test_files_are_skipped_by_the_columns_of_the_order_alone(tmp_path: Path) -> None:
    count = 80
    columns = {"n": pa.array(np.arange(count)), "m": pa.array(np.arange(count) % 2), "p": pa.array(np.arange(count))}
    file_table(tmp_path, columns, 8, ORDER)
    reader = TableReader.open(str(tmp_path))

    def told(condition: str) -> tuple[int, int]:
        plan = reader.plan(condition=condition, count_all=True)
        (one,) = plan.laid_out
        assert one.order == ORDER
        assert str(one).startswith(f"compaction {one.instant}, z_order (sampled) by n, m: files 8, ")
        return one.files, one.skipped

    assert told("n < 10") == (8, 7)
    assert told("n < 20 and p < 10") == (8, 6)  # p, which is not of the order, skips one more
    assert told("p < 10") == (8, 0)
    assert told("m = 5") == (8, 8)
    assert told("n < 10 or p > 70") == (8, 0)
    assert reader.plan(condition="n < 10").laid_out == ()


def test_a_commit_without_an_order_is_not_named(tmp_path: Path) -> None:
    file_table(tmp_path, {"n": pa.array(np.arange(10))}, 2)
    assert TableReader.open(str(tmp_path)).plan(count_all=True).laid_out == ()


def test_hudis_own_clustering_is_named_by_the_columns_of_its_plan(tmp_path: Path) -> None:
    plan = TableReader.open(str(extracted("mor_zorder", tmp_path))).plan(condition="id < 0", count_all=True)
    (one,) = plan.laid_out
    assert one.clustering
    assert one.order is None
    assert str(one) == f"clustering {one.instant}, curve not recorded, by id, k: files 3, skipped by these columns 3"


def test_a_damaged_order_is_told_and_the_plan_stays(tmp_path: Path) -> None:
    file_table(tmp_path, {"n": pa.array(np.arange(10))}, 2, ORDER)
    (commit,) = (tmp_path / ".hoodie/timeline").glob("*_*.commit")
    text = commit.read_bytes()
    assert text.count(b"z_order") == 1
    commit.write_bytes(text.replace(b"z_order", b"x_order"))
    plan = TableReader.open(str(tmp_path)).plan(condition="n < 5", count_all=True)
    assert (plan.laid_out, plan.files) == ((), 1)
    assert "names no order" in str(plan.warnings)
