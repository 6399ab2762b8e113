"""Groups bucket by bucket are those of DuckDB over all rows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.query.join.aggregates import Aggregate
from hudilake.query.join.bucket_aggregate import BucketAggregate
from hudilake.query.join.engine import JoinLimits
from hudilake.query.join.pairs import groups_of
from tests.hudilake.query.join.lakes import asked, everything, in_order, make_table, rows_from, upsert
from tests.hudilake.query.join.test_bucket_join import fill, scan


def grouped(plan: BucketAggregate) -> pa.Table:
    return pa.Table.from_batches(list(plan.read(groups_of(plan.scan, 2))), plan.schema)


def test_keys_of_several_partitions_are_one_group(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", {"id": pa.int64(), "part": pa.string()}, partition=("part",), rules=(("b", 2),))
    upsert(table, rows_from(table, [(key, part) for key in range(30) for part in ("a", "b")], 1))
    plan = BucketAggregate(scan(tmp_path / "t"), ("id",), (Aggregate("count"), Aggregate("max", "part")), JoinLimits())
    assert plan.is_whole
    assert in_order(grouped(plan)) == sorted([(key, 2, "b") for key in range(30)], key=repr)


def test_groups_beyond_the_memory_are_cut(tmp_path: Path) -> None:
    ids = pa.array(range(60_000))
    table = make_table(tmp_path / "t", {"id": pa.int64(), "text": pa.string()}, buckets=1)
    texts = pc.utf8_lpad(ids.cast(pa.string()), 400, "x")
    upsert(table, pa.table([ids, texts, pa.repeat(pa.scalar(1), len(ids))], schema=table.schema))
    (spill := tmp_path / "spill").mkdir()
    plan = BucketAggregate(
        scan(tmp_path / "t"), ("id", "text"), (Aggregate("count", name="n"),), JoinLimits(32, str(spill))
    )
    found = grouped(plan)
    assert found.num_rows == pc.count_distinct(found["id"]).as_py() == len(ids)
    assert pc.sum(found["n"]).as_py() == len(ids)
    assert not list(spill.iterdir())


def test_parts_of_groups(tmp_path: Path) -> None:
    fill(tmp_path / "t", 5)
    plan = BucketAggregate(scan(tmp_path / "t"), ("part",), (Aggregate("count"), Aggregate("sum", "id")), JoinLimits())
    assert not plan.is_whole
    found, stored = grouped(plan), everything(tmp_path / "t")
    assert found.num_rows > 3
    merged = "SELECT part, sum(count), sum(sum_id) FROM l GROUP BY ALL"
    assert asked(merged, found, found) == asked("SELECT part, count(*), sum(id) FROM l GROUP BY ALL", stored, stored)


def test_sums_are_exact(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", {"id": pa.int64(), "n": pa.int64(), "price": pa.decimal128(30, 4)}, buckets=1)
    top, price = 2**63 - 1, Decimal("12345678901234567890123456.0001")
    upsert(table, rows_from(table, [(key, top, price) for key in range(3)], 1))
    plan = BucketAggregate(scan(tmp_path / "t"), (), (Aggregate("sum", "n"), Aggregate("sum", "price")), JoinLimits())
    assert in_order(grouped(plan)) == [(Decimal(3 * top), Decimal("37037036703703703670370368.0003"))]


def test_what_is_no_aggregate_is_refused(tmp_path: Path) -> None:
    fill(tmp_path / "t", 6)
    table = scan(tmp_path / "t")
    with pytest.raises(ConfigError, match="sum has no column"):
        Aggregate("sum")
    with pytest.raises(UnsupportedError, match="sum does not take the column note"):
        BucketAggregate(table, ("id",), (Aggregate("sum", "note"),), JoinLimits())
    with pytest.raises(ConfigError, match="same name: id, id"):
        BucketAggregate(table, ("id",), (Aggregate("count", name="id"),), JoinLimits())
    with pytest.raises(UnsupportedError, match="distinct values"):
        Aggregate("count_distinct", "note").parts()
