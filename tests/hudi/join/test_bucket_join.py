"""Joins pair by pair give what DuckDB gives over all rows of both tables."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.hudi.join.bucket_join import BucketJoin
from pipeline.hudi.join.bucketed import BucketedScan, bucketed
from pipeline.hudi.join.columns import join_columns
from pipeline.hudi.join.engine import Bounds
from pipeline.hudi.join.how import JoinHow
from pipeline.hudi.join.keys import ColumnPair, JoinKeys
from pipeline.hudi.join.pairs import Pair, pairs_of
from pipeline.hudi.read import Query, TableReader
from tests.hudi.join.lakes import asked, changed_table, everything, in_order, make_table, rows_from, upsert
from tests.hypothesis_profile import scaled

HOWS: tuple[JoinHow, ...] = ("inner", "left", "right", "full", "semi", "anti")
COLUMNS = {"id": pa.int64(), "part": pa.string(), "note": pa.string()}
BY_ID = (("id", "id"),)


def scan(path: Path, query: Query | None = None, condition: str | None = None) -> BucketedScan:
    reader = TableReader.open(str(path))
    return bucketed(reader, reader.plan(query, condition, everything(path, query).column_names))


def joined(
    left: BucketedScan, right: BucketedScan, on: tuple[ColumnPair, ...], how: JoinHow, slots: int = 2
) -> tuple[tuple[Pair, ...], pa.Table]:
    """The pairs, and the rows of all of them."""
    keys = JoinKeys.of(left, right, on)
    columns = join_columns(left.schema, right.schema, on, how, ("", "_r"))
    pairs = pairs_of(left, right, keys, how, slots)
    join = BucketJoin(left, right, keys, columns, Bounds(64))
    return pairs, pa.Table.from_batches([batch for pair in pairs for batch in join.read(pair)], columns.schema)


def expected(left: pa.Table, right: pa.Table, on: tuple[ColumnPair, ...], how: JoinHow) -> list[tuple[Any, ...]]:
    """Every column of both sides; a shared key column once."""
    shared = {a for a, b in on if a == b}
    whole = how in ("semi", "anti")
    values = [f"coalesce(l.{n}, r.{n})" if n in shared and not whole else f"l.{n}" for n in left.column_names]
    values += [] if whole else [f"r.{n}" for n in right.column_names if n not in shared]
    condition = " AND ".join(f"l.{a} = r.{b}" for a, b in on)
    return asked(f"SELECT {', '.join(values)} FROM l {how} JOIN r ON {condition}", left, right)


def check(left: Path, right: Path, on: tuple[ColumnPair, ...], slots: int = 2) -> None:
    one, other = everything(left), everything(right)
    for how in HOWS:
        _, rows = joined(scan(left), scan(right), on, how, slots)
        assert in_order(rows) == expected(one, other, on, how), how


def fill(path: Path, seed: int, **options: Any) -> None:  # noqa: ANN401
    chance = random.Random(seed)
    table = make_table(path, COLUMNS, **options)
    changed_table(table, range(60), chance, lambda key: (key, f"p{key % 3}", f"{path.name} {chance.random():.3f}"))


@pytest.mark.parametrize(("left", "right"), [(4, 4), (6, 2), (2, 6), (4, 6), (3, 1)])
def test_every_kind_of_join_over_base_and_log_files(tmp_path: Path, left: int, right: int) -> None:
    fill(tmp_path / "l", 1, buckets=left)
    fill(tmp_path / "r", 2, buckets=right, partition=("part",))
    check(tmp_path / "l", tmp_path / "r", BY_ID)


@settings(max_examples=scaled(60, least=8))
@given(data=st.data())
def test_any_counts_and_partitions(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Bucket counts that divide each other or do not, by partition too; tables partitioned by another column or none;
    more columns than the bucket key, which pair partitions."""
    place = tmp_path_factory.mktemp("any")
    for name in ("l", "r"):
        rules = data.draw(st.sampled_from([(), (("p1", 3),), (("p0|p2", 8),), (("p1", 2), ("p2", 6))]))
        partition = data.draw(st.sampled_from([(), ("part",)])) if not rules else ("part",)
        fill(
            place / name,
            data.draw(st.integers(0, 1000)),
            buckets=data.draw(st.sampled_from([1, 2, 3, 4, 8])),
            partition=partition,
            rules=rules,
        )
    on = data.draw(st.sampled_from([BY_ID, (*BY_ID, ("part", "part")), (*BY_ID, ("note", "note"))]))
    check(place / "l", place / "r", on, slots=data.draw(st.sampled_from([1, 2, 16])))


def test_composite_keys_with_nulls_and_other_names(tmp_path: Path) -> None:
    texts = ["", "a", "b:c", "d,e", None, "x" * 30, "é"]
    for name, key in (("l", ("a", "b")), ("r", ("a", "c"))):
        table = make_table(tmp_path / name, {key[0]: pa.int32(), key[1]: pa.string()}, key=key)
        upsert(
            table, rows_from(table, [(i % 5, texts[(i + len(name)) % 7]) for i in range(0, 35, 1 + (name == "r"))], 1)
        )
    check(tmp_path / "l", tmp_path / "r", (("a", "a"), ("b", "c")))
