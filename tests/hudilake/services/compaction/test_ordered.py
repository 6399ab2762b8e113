"""Base files whose rows a compaction lays out by other columns than the key: the same rows, in the wanted order."""

from __future__ import annotations

import random
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.layout.order import recorded_order
from hudilake.policies import Curve, OrderPolicy
from hudilake.services.compaction import CompactedFile, CompactionConfig, compact_file_group, run
from hudilake.write import merge
from tests.hudilake.services.compaction.made import META, ORDER, SCHEMA, Row, Slice, row
from tests.hudilake.services.compaction.steps import ALWAYS, new, serially, sound
from tests.hudilake.services.compaction.test_memory import GROUP_ROWS, ROWS, _schema, build, peak
from tests.hypothesis_profile import scaled
from tests.logged import events

PLAIN = CompactionConfig(row_group_rows=3, tombstone_retention_hours=1)
LINEAR = OrderPolicy(columns=("n", "id"), curve="linear")
KEYS = st.text("abé", min_size=1, max_size=2)
ORDERS = st.integers(0, 6)
DELETES = st.dictionaries(KEYS, st.one_of(st.none(), ORDERS), max_size=3)
#: Upserts (a key's ordering value and its n) and deletes of a commit.
COMMIT = st.tuples(
    st.dictionaries(KEYS, st.tuples(ORDERS, st.one_of(st.none(), st.integers(0, 3))), max_size=5), DELETES
)
#: The commits before each of several compactions.
ROUNDS = st.lists(st.lists(COMMIT.filter(any), min_size=1, max_size=3), min_size=1, max_size=4)


def ordered(**options: Any) -> CompactionConfig:  # noqa: ANN401 - of CompactionConfig
    return CompactionConfig(**{**PLAIN.model_dump(), "order_by": LINEAR, **options})


def place(one: Row) -> tuple[Any, ...]:
    """Where a row stands in the order: nulls first."""
    return one["n"] is not None, one["n"] or 0, one["id"]


def without_names(rows: list[Row]) -> list[Row]:
    """The rows in key order, without the name of their file."""
    return sorted(({**one, "_hoodie_file_name": ""} for one in rows), key=lambda one: str(one[RECORD_KEY_FIELD]))


def stored(made: Slice, done: CompactedFile) -> list[Row]:
    """The rows of a base file as they stand in it."""
    rows: list[Row] = made.base_file(done).read().to_pylist()
    return rows


@settings(deadline=None, max_examples=scaled(60))
@given(rounds=ROUNDS, stretch=st.integers(1, 4), turned=st.integers(0, 4))
def test_any_history_has_the_same_rows_with_an_order(rounds: list[list[Any]], stretch: int, turned: int) -> None:
    """Compaction after compaction, with updates, deletes, events that come late, and a change of the order in between.

    ``turned``: the round from which on the order is the other way round.
    """
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as name:
        patch.setattr(merge, "STRETCH_ROWS", stretch)
        one, other = Slice.at(Path(name, "one")), Slice.at(Path(name, "other"))
        commit = 0
        for number, commits in enumerate(rounds, 1):
            for upserts, deletes in commits:
                commit += 1
                rows = [row(key, order, commit, n=n) for key, (order, n) in sorted(upserts.items())]
                for made in (one, other):
                    made.write_log(commit, rows, sorted(deletes.items()))
            assert without_names(one.read()) == without_names(other.read())
            time = f"202401010001000{number:02d}"
            columns = ("n", "id") if number < turned else ("id", "n")
            with_order = one.compact_at(time, ordered(order_by=OrderPolicy(columns=columns, curve="linear")))
            without = other.compact_at(time, PLAIN)
            held = stored(one, with_order)
            assert held == sorted(held, key=place if number < turned else lambda r: (r["id"], place(r)))
            assert without_names(held) == without_names(stored(other, without))
            assert with_order.base_stat.num_deletes == without.base_stat.num_deletes
            assert (with_order.tombstones is None) == (without.tombstones is None)
            one.go_on_from(with_order, time)
            other.go_on_from(without, time)


CURVES = [
    OrderPolicy(columns=("n", "id"), curve=curve, values=values)
    for curve in ("z_order", "hilbert")
    for values in ("sampled", "direct")
]


@pytest.mark.parametrize("policy", CURVES, ids=lambda policy: f"{policy.curve}-{policy.values}")
def test_curves_put_rows_that_are_near_in_all_columns_together(tmp_path: Path, policy: OrderPolicy) -> None:
    """A row group covers a part of the values of both columns, where one in key order covers all values of ``n``."""
    made, chance = Slice.at(tmp_path), random.Random(1)
    made.write_log(1, [row(f"{n:03}", 1, 1, n=chance.randrange(1000)) for n in range(640)])
    made.write_log(2, [row(f"{n:03}", 2, 2, n=chance.randrange(1000)) for n in range(0, 640, 7)], [("001", 5)])
    before = without_names(made.read())
    config = ordered(row_group_rows=40, order_by=policy)
    done, by_key = made.compact(config), made.compact_at("20240101000100001", ordered(row_group_rows=40, order_by=None))
    assert without_names(stored(made, done)) == before == without_names(stored(made, by_key))
    if policy.values == "sampled":
        assert _covered(made, done) < 0.4 < _covered(made, by_key)
    held = stored(made, done)
    assert stored(made, made.compact(config)) == held != stored(made, by_key)


def _covered(made: Slice, done: CompactedFile) -> float:
    """The share of the values of a column that a row group covers, on average over both columns."""
    file = made.base_file(done)
    shares = []
    for number in range(file.num_row_groups):
        rows = file.read_row_group(number, columns=["id", "n"]).to_pylist()
        spans = [max(values) - min(values) for values in ([int(r["id"]) for r in rows], [r["n"] for r in rows])]
        shares.append((spans[0] / 640 + spans[1] / 1000) / 2)
    return sum(shares) / len(shares)


def test_control_without_an_order_the_rows_stand_by_key(tmp_path: Path) -> None:
    made = Slice.at(tmp_path)
    made.write_log(1, [row("a", 1, 1, n=2), row("b", 1, 1, n=1), row("c", 1, 1, n=None)])
    by_key, laid_out = stored(made, made.compact(PLAIN)), stored(made, made.compact(ordered()))
    assert by_key != sorted(by_key, key=place)
    assert [one["id"] for one in by_key] == ["a", "b", "c"]
    assert [one["id"] for one in laid_out] == ["c", "b", "a"]


def test_columns_that_the_table_lacks_are_left_out(tmp_path: Path) -> None:
    made = Slice.at(tmp_path)
    made.write_log(1, [row("a", 1, 1, n=2), row("b", 1, 1, n=1)])
    some = ordered(order_by=OrderPolicy(columns=("gone", "n"), curve="linear"))
    none = ordered(order_by=OrderPolicy(columns=("gone",), curve="linear"))
    assert [[one["id"] for one in stored(made, made.compact(config))] for config in (some, none)] == [
        ["b", "a"],
        ["a", "b"],
    ]


def test_a_task_that_runs_again_writes_the_same_bytes(tmp_path: Path) -> None:
    made = Slice.at(tmp_path)
    rows = [row(f"{n:04}", 1, 0, n=n % 7) for n in range(1000)]
    random.Random(1).shuffle(rows)
    made.write_base(rows)
    made.write_log(1, [row(f"{n:04}", 2, 1, n=n % 5) for n in range(0, 1500, 3)], [("0001", 2)])
    first = made.compact(ordered(row_group_rows=100))
    data = made.storage.read(first.base.name)
    assert made.compact(ordered(row_group_rows=100)) == first
    assert made.storage.read(first.base.name) == data


@pytest.mark.first(1)
@pytest.mark.parametrize("curve", ["linear", "hilbert"])
def test_memory_is_bounded_with_an_order(tmp_path: Path, curve: Curve) -> None:
    """As without one: the log, and a few row groups; what sorts the rows is a few bytes a row."""
    made = build(tmp_path, shuffled=False)
    policy = OrderPolicy(columns=("n", "id"), curve=curve)
    config = ordered(row_group_rows=GROUP_ROWS, bloom_kind=None, order_by=policy)
    made.compact(config, _schema())  # what is compiled and imported counts as memory
    with peak() as compacted:
        done = made.compact(config, _schema())
    assert done.base_stat.num_writes == ROWS + 5
    assert compacted() < 12_000_000


def test_rows_of_append_tables_are_laid_out_and_never_merged(tmp_path: Path) -> None:
    made = Slice.at(tmp_path)
    made.write_log(1, [row("a", 1, 1, n=2), row("b", 1, 1, n=1)])
    made.write_log(2, [row("a", 1, 2, n=0), row("b", 1, 2, n=None)])
    for config, expected in ((ordered(), [None, 0, 1, 2]), (PLAIN, [2, 1, 0, None])):
        context = replace(made.context(config), kind=TableKind(index="none"), restated_hours=0)
        done = compact_file_group(made.storage, context, made.operation())
        assert [one["n"] for one in stored(made, done)] == expected


def test_the_footer_has_the_key_range_of_rows_in_any_order(tmp_path: Path) -> None:
    made = Slice.at(tmp_path)
    made.write_log(1, [row(key, 1, 1, n=n) for key, n in (("a", 5), ("m", 1), ("z", 3))])
    done = made.compact(ordered(row_group_rows=1))
    footer = made.base_file(done).metadata.metadata
    assert (footer[b"hoodie_min_record_key"], footer[b"hoodie_max_record_key"]) == (b"a", b"z")
    assert done.base.ranges is not None
    spans = {item.column: (item.min, item.max) for item in done.base.ranges}
    assert (spans[RECORD_KEY_FIELD], spans["n"], spans[ORDER]) == (("a", "z"), (1, 5), (1, 1))
    assert pa.schema([*META, *SCHEMA]).names == made.base_file(done).schema_arrow.names


WIDE = pa.schema([*SCHEMA, pa.field("ratio", pa.float64()), pa.field("note", pa.string())])


def wide_slice(path: Path, with_nan: bool) -> CompactedFile:
    """A compacted file of 100 rows in the order of ``n``; ``ratio`` of one row is NaN, or of none."""
    made = Slice.at(path)
    rows = [row(f"{n:03}", 1, 1, n=n * 37 % 100, ratio=n / 8, note="x" * n) for n in range(100)]
    if with_nan:
        rows[50]["ratio"] = float("nan")
    made.write_log(1, rows, schema=WIDE)
    done = made.compact(ordered(row_group_rows=30, order_by=OrderPolicy(columns=("n",), curve="linear")), WIDE)
    assert len(stored(made, done)) == 100
    return done


def ranges_in(path: Path, done: CompactedFile, column: str) -> list[tuple[Any, Any] | None]:
    """The least and the greatest value of each row group, as the footer says; None where it does not say them."""
    metadata = pq.read_metadata(path / done.base.name)
    place = [metadata.schema.column(i).name for i in range(metadata.num_columns)].index(column)
    found = [metadata.row_group(i).column(place) for i in range(metadata.num_row_groups)]
    assert all(chunk.has_column_index for chunk in found if chunk.statistics is not None)
    return [(c.statistics.min, c.statistics.max) if c.statistics is not None else None for c in found]


def test_files_in_an_order_have_statistics_of_their_row_groups_and_a_page_index(tmp_path: Path) -> None:
    done = wide_slice(tmp_path, with_nan=False)
    assert ranges_in(tmp_path, done, "n") == [(0, 29), (30, 59), (60, 89), (90, 99)]
    assert None not in ranges_in(tmp_path, done, "ratio")


def test_a_column_with_nan_has_no_statistics(tmp_path: Path) -> None:
    """Statistics leave NaN out, and Spark takes it for greater than any number: it would skip the row."""
    done = wide_slice(tmp_path, with_nan=True)
    assert ranges_in(tmp_path, done, "ratio") == [None] * 4
    assert ranges_in(tmp_path, done, "n") == [(0, 29), (30, 59), (60, 89), (90, 99)]
    footer = pq.read_metadata(tmp_path / done.base.name).metadata
    assert (footer[b"hoodie_min_record_key"], footer[b"hoodie_max_record_key"]) == (b"000", b"099")


def test_control_files_in_key_order_have_statistics_of_the_key_alone(tmp_path: Path) -> None:
    made = Slice.at(tmp_path)
    made.write_log(1, [row("a", 1, 1, n=1)])
    done = made.compact(PLAIN)
    assert (ranges_in(tmp_path, done, "n"), pq.read_metadata(tmp_path / done.base.name).num_rows) == ([None], 1)


def test_columns_that_are_left_out_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table, model = new(tmp_path, indexed=False)
    order = OrderPolicy(columns=("qty", "gone"), curve="linear")
    (done,) = run(table, ALWAYS.model_copy(update={"order_by": order}), serially)
    sound(tmp_path, model)
    told = events(caplog)["order_columns_lost"]
    assert (told["levelname"], told["columns"]) == ("WARNING", "gone")
    recorded = recorded_order(table.timeline.commit_metadata(done).extra)
    assert recorded is not None
    assert recorded.columns == ("qty",)
