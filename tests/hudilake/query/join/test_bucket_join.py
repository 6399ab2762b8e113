"""Joins pair by pair give what DuckDB gives over all rows of both tables."""

from __future__ import annotations

import random
import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.errors import ConfigError, CorruptDataError, UnsupportedError
from hudilake.format.definition.bucket import bucket_ids
from hudilake.format.definition.bucketing import Bucketing, PartitionBuckets, SimpleBuckets
from hudilake.policies import IndexType
from hudilake.query.join.bucket_join import BucketJoin, JoinSide
from hudilake.query.join.bucketed import BucketedScan, bucketed
from hudilake.query.join.columns import join_columns
from hudilake.query.join.engine import JoinLimits
from hudilake.query.join.how import JoinHow, check_how
from hudilake.query.join.keys import ColumnPair, HashedKey, JoinKeys
from hudilake.query.join.pairs import Pair, pairs_of
from hudilake.read import Incremental, Query, Snapshot, TableReader
from tests.binlake.rows.upsert.ingest import PATH, Ingest, Kind
from tests.binlake.tables.test_rebucket import inserts, moved
from tests.hudilake.golden_kinds import extracted
from tests.hudilake.query.join.lakes import asked, changed_table, everything, in_order, make_table, rows_from, upsert
from tests.hypothesis_profile import scaled
from tests.model import Shape

HOWS: tuple[JoinHow, ...] = ("inner", "left", "right", "full", "semi", "anti")
COLUMNS = {"id": pa.int64(), "part": pa.string(), "note": pa.string()}
BY_ID = (("id", "id"),)


def scan(
    path: Path, query: Query | None = None, condition: str | None = None, given: Bucketing | None = None
) -> BucketedScan:
    reader = TableReader.open(str(path))
    return bucketed(reader, reader.plan(query, condition, everything(path, query).column_names), given)


def joined(
    left: BucketedScan, right: BucketedScan, on: tuple[ColumnPair, ...], how: JoinHow, slots: int = 2
) -> tuple[tuple[Pair, ...], pa.Table]:
    """The pairs, and the rows of all of them."""
    keys = JoinKeys.of(left, right, on)
    columns = join_columns(left.schema, right.schema, on, how, ("", "_r"))
    pairs = pairs_of(left, right, keys, how, slots)
    join = BucketJoin(JoinSide(left, keys.left), JoinSide(right, keys.right), columns, JoinLimits(64))
    return pairs, pa.Table.from_batches(list(join.read(pairs)), columns.schema)


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
    lefts, rights = scan(left), scan(right)
    for how in HOWS:
        _, rows = joined(lefts, rights, on, how, slots)
        assert in_order(rows) == expected(one, other, on, how), how


def fill(path: Path, seed: int, **options: Any) -> None:  # noqa: ANN401
    chance = random.Random(seed)
    table = make_table(path, COLUMNS, **options)
    changed_table(table, range(60), chance, lambda key: (key, f"p{key % 3}", f"{path.name} {chance.random():.3f}"))


@pytest.mark.first(2)
@pytest.mark.parametrize(("left", "right"), [(4, 4), (2, 6), (4, 6)])
def test_every_kind_of_join_over_base_and_log_files(tmp_path: Path, left: int, right: int) -> None:
    fill(tmp_path / "l", 1, buckets=left)
    fill(tmp_path / "r", 2, buckets=right, partition=("part",))
    check(tmp_path / "l", tmp_path / "r", BY_ID)


@pytest.mark.full
@settings(max_examples=scaled(30, least=3, divisor=10))
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


def test_every_pair_is_one_task_of_the_larger_count_where_that_costs_least(tmp_path: Path) -> None:
    fill(tmp_path / "l", 1, buckets=8)
    fill(tmp_path / "r", 2, buckets=2)
    for slots, of in ((1, 2), (16, 8)):
        pairs, _ = joined(scan(tmp_path / "l"), scan(tmp_path / "r"), BY_ID, "inner", slots)
        assert {pair.of for pair in pairs} == {of}
        assert [pair.number for pair in pairs] == list(range(of))
        for pair in pairs:
            assert {piece.bucket for piece in pair.left} == {b for b in range(8) if b % of == pair.number}
            assert [piece.bucket for piece in pair.right] == [pair.number % 2]


def test_partitions_of_a_join_column_are_joined_with_each_other_only(tmp_path: Path) -> None:
    for name in ("l", "r"):
        table = make_table(tmp_path / name, COLUMNS, buckets=2, partition=("part",))
        upsert(table, rows_from(table, [(i, f"{'p' if i % 2 else name} %/{i % 2}", "") for i in range(40)], 1))
    left, right, on = scan(tmp_path / "l"), scan(tmp_path / "r"), (*BY_ID, ("part", "part"))
    pairs, rows = joined(left, right, on, "inner")
    assert len(pairs) == 2  # the other partition has no partner: it is not read
    assert {p.file_slice.partition_path for pair in pairs for p in (*pair.left, *pair.right)} == {"part=p %25%2F1"}
    assert rows.num_rows == 20
    assert len(joined(left, right, on, "full")[0]) == 6
    check(tmp_path / "l", tmp_path / "r", on)


def test_a_condition_skips_the_files_of_its_side(tmp_path: Path) -> None:
    fill(tmp_path / "l", 1, partition=("part",))
    fill(tmp_path / "r", 2)
    left = scan(tmp_path / "l", condition="part = 'p1' and id < 40")
    assert {s.partition_path for s in left.plan.slices} == {"part=p1"}
    _, rows = joined(left, scan(tmp_path / "r"), BY_ID, "left")
    wanted = everything(tmp_path / "l", condition="part = 'p1' and id < 40")
    assert in_order(rows) == expected(wanted, everything(tmp_path / "r"), BY_ID, "left")


def test_time_travel_uses_the_buckets_of_that_time(tmp_path: Path) -> None:
    here = Ingest.at(tmp_path / "lake", Shape(("id",)), buckets=4)
    here.run(inserts(0, 30))
    (first,) = here.table.hudi.timeline.completed()
    moved(here, SimpleBuckets(3))
    here.restart()
    here.run(inserts(30, 10))
    fill(tmp_path / "r", 2, buckets=2)
    left, right = tmp_path / "lake" / PATH, tmp_path / "r"
    for query, buckets in ((Snapshot(first.requested_time), 4), (None, 3), (Incremental("", first.completion_time), 4)):
        one = scan(left, query)
        assert one.bucketing.count("") == buckets
        rows = everything(left, query)
        assert rows.num_rows == (40 if query is None else 30)
        assert in_order(joined(one, scan(right), BY_ID, "full")[1]) == expected(rows, everything(right), BY_ID, "full")


def test_rows_in_a_bucket_of_other_columns_are_refused(tmp_path: Path) -> None:
    """Hudi reads names out of keys with both a comma and a colon, so the same text is in other buckets of the table
    whose key column has the name that the text holds."""
    texts = pa.array([f"code:{number},b" for number in range(20)])
    differ = bucket_ids(texts, ["code"], 8) != bucket_ids(texts, ["name"], 8)
    text = texts.filter(pa.array(differ))[0].as_py()
    for name in ("code", "name"):
        table = make_table(tmp_path / name, {name: pa.string()}, key=(name,), buckets=8)
        upsert(table, rows_from(table, [("plain",), ("a:b,c",)], 1))
    on = (("code", "name"),)
    check(tmp_path / "code", tmp_path / "name", on)
    upsert(table, rows_from(table, [(text,)], 2))
    with pytest.raises(UnsupportedError, match=r"not in the bucket that its columns say: \{'name'"):
        joined(scan(tmp_path / "code"), scan(tmp_path / "name"), on, "full")


def test_what_cannot_be_joined_by_buckets_is_refused(tmp_path: Path) -> None:
    types = {"l": pa.int64(), "short": pa.int16(), "decimal": pa.decimal128(9, 0), "text": pa.string()}
    for name, kind in types.items():
        make_table(tmp_path / name, {"id": kind, "n": pa.int64()})
    make_table(tmp_path / "pair", {"id": pa.int64(), "n": pa.int64()}, key=("id", "n"))
    left = scan(tmp_path / "l")
    assert JoinKeys.of(left, scan(tmp_path / "short"), BY_ID).left == HashedKey(("id",), ("id",))
    for name in ("decimal", "text"):
        with pytest.raises(UnsupportedError, match="equal values may have other texts"):
            JoinKeys.of(left, scan(tmp_path / name), BY_ID)
    for other, on in (("pair", BY_ID), ("short", (("n", "n"),)), ("short", (("id", "n"),))):
        with pytest.raises(UnsupportedError, match="not by the bucket keys of both tables"):
            JoinKeys.of(left, scan(tmp_path / other), on)
    pair = scan(tmp_path / "pair")
    with pytest.raises(UnsupportedError, match="not by the bucket keys"):
        JoinKeys.of(pair, pair, (("id", "n"), ("n", "id")))
    with pytest.raises(ConfigError, match="no kind of join"):
        check_how("outer")
    with pytest.raises(ConfigError, match="same name: _binlake_order, n"):
        join_columns(left.schema, left.schema, BY_ID, "inner", ("", ""))


@pytest.mark.parametrize("index", ["consistent_bucket", "bloom"])
def test_other_indexes_are_refused(tmp_path: Path, index: IndexType) -> None:
    here = Ingest.at(tmp_path, Shape(("id",)), kind=Kind(index=index))
    here.run(inserts(0, 3))
    with pytest.raises(UnsupportedError, match=index):
        scan(tmp_path / PATH)


@pytest.mark.full
def test_rows_beyond_the_memory_are_spilled(tmp_path: Path) -> None:
    """Hash tables of about 80 MB are joined within 32 MiB: DuckDB fails where it may neither keep nor spill them."""
    ids = pa.array(range(100_000))
    for name in ("l", "r"):
        table = make_table(tmp_path / name, {"id": pa.int64(), "text": pa.string()}, buckets=1)
        texts = pc.utf8_lpad(ids.cast(pa.string()), 800, name)
        upsert(table, pa.table([ids, texts, pa.repeat(pa.scalar(1), len(ids))], schema=table.schema))
    (spill := tmp_path / "spill").mkdir()
    left, right = scan(tmp_path / "l"), scan(tmp_path / "r")
    keys = JoinKeys.of(left, right, BY_ID)
    columns = join_columns(left.schema, right.schema, BY_ID, "full", ("", "_r"))
    join = BucketJoin(JoinSide(left, keys.left), JoinSide(right, keys.right), columns, JoinLimits(32, str(spill)))
    rows, spilled = 0, 0
    for batch in join.read(pairs_of(left, right, keys, "full", 1)):
        spilled = max(spilled, sum(file.stat().st_size for file in spill.rglob("*")))
        rows += sum(
            pc.equal(batch.column("id").cast(pa.string()), pc.utf8_ltrim(batch.column("text_r"), "r")).to_pylist()
        )
    assert rows == len(ids)
    assert spilled > 4_000_000
    assert not list(spill.iterdir())


def test_a_table_that_hudi_wrote(tmp_path: Path) -> None:
    """Its properties do not say its buckets; wrong ones are found."""
    theirs, ours = extracted("mor_partition_buckets", tmp_path), tmp_path / "r"
    fill(ours, 3, buckets=2)
    with pytest.raises(UnsupportedError, match="its index is unknown"):
        scan(theirs)
    left = scan(theirs, given=PartitionBuckets(1, (("region=eu", 4), ("region=u.*", 2))))
    rows = everything(theirs)
    for how in HOWS:
        assert in_order(joined(left, scan(ours), BY_ID, how)[1]) == expected(rows, everything(ours), BY_ID, how), how
    with pytest.raises(UnsupportedError, match="none of the 2 buckets"):
        joined(scan(theirs, given=SimpleBuckets(2)), scan(ours), BY_ID, "inner")
    with pytest.raises(UnsupportedError, match="not in the bucket that its columns say"):
        joined(scan(theirs, given=SimpleBuckets(8)), scan(ours), BY_ID, "left")
    with pytest.raises(ConfigError, match="says its index itself"):
        scan(ours, given=SimpleBuckets(2))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    """Whichever side it is on: DuckDB gives only the text of an error in the rows that it pulls."""
    for name in ("l", "r"):
        fill(tmp_path / name, 4, buckets=1)
    for name in ("l", "r"):
        (base,) = (tmp_path / name).glob("*.parquet")
        whole = base.read_bytes()
        base.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(CorruptDataError, match=re.escape(base.name)):
            joined(_scan(tmp_path / "l"), _scan(tmp_path / "r"), BY_ID, "inner")
        base.write_bytes(whole)


def _scan(path: Path) -> BucketedScan:
    reader = TableReader.open(str(path))
    return bucketed(reader, reader.plan(columns=list(COLUMNS)))


def test_every_type_comes_through(tmp_path: Path) -> None:
    kinds = {
        "id": pa.int32(),
        "small": pa.int8(),
        "ratio": pa.float32(),
        "price": pa.decimal128(38, 10),
        "raw": pa.binary(),
        "day": pa.date32(),
        "at": pa.timestamp("us", tz="UTC"),
        "plain": pa.timestamp("us"),
        "flag": pa.bool_(),
        "clock": pa.time64("us"),
    }
    row = (
        *(1, -2, float("nan"), Decimal("1234567890123456789012345678.0000000001"), b"\x00\xff", date(1, 1, 1)),
        datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
        datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None),
        *(True, time(23, 59, 59, 999999)),
    )
    for name in ("l", "r"):
        upsert(table := make_table(tmp_path / name, kinds), rows_from(table, [row, (2, *[None] * 9)], 1))
    left = scan(tmp_path / "l")
    _, rows = joined(left, scan(tmp_path / "r"), BY_ID, "full")
    assert rows.schema.types == [*left.schema.types, *left.schema.types[1:]]
    stored = everything(tmp_path / "l")
    for names in (stored.column_names, ["id", *(f"{name}_r" for name in stored.column_names[1:])]):
        assert repr(in_order(rows.select(names))) == repr(in_order(stored))  # NaN is not equal to itself
