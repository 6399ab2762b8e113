"""Layouts proposed for tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hudilake.format.files.column_stats import ColumnRange, ValueType
from hudilake.policies import CompactionPolicy, FileSizePolicy
from hudilake.read import TableReader
from hudilake.read.filters.bounds import column_bounds
from hudilake.services.advice.advise import Advice, AdviceSettings, advise
from hudilake.services.advice.overlap import depth_of
from hudilake.services.advice.proposal import distinct_values
from hudilake.services.advice.queries import asked_queries, filtered_columns, statements
from tests.hudilake.read.lakes import new_table, row
from tests.hudilake.services.advice.tables import file_table

ROWS, FILES = 40_000, 20
NAMES = ["t"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows come by time; customers and pages come at any time."""
    path, chance = tmp_path_factory.mktemp("advice"), np.random.default_rng(7)
    page = chance.integers(0, 5000, ROWS)
    columns = {
        "placed": pa.array(np.arange(ROWS) * 10),
        "customer": pa.array(chance.integers(0, 10_000, ROWS)),
        "page": pa.array([f"http://www.shop.example/{number:05d}" for number in page]),
        "flag": pa.array(page % 2 == 0),
        "empty": pa.nulls(ROWS, pa.string()),
    }
    file_table(path, columns, FILES)
    return path


def told(path: Path, *queries: str) -> Advice:
    reader = TableReader.open(str(path))
    size = reader.plan().size
    given = AdviceSettings(files=FileSizePolicy(target_bytes=max(size // FILES, 1), small_bytes=1))
    return advise(reader, queries, NAMES, given)


def test_the_overlap_of_each_column(table: Path) -> None:
    found = {one.column: one.overlap for one in told(table).columns}
    depth = {name: one.depth for name, one in found.items() if one is not None}
    assert depth["placed"] == depth["id"] == 1
    assert 19 < depth["customer"] <= FILES
    assert 19 < depth["page"] <= FILES
    assert depth["flag"] == FILES
    empty = found["empty"]
    assert empty is not None
    assert (empty.depth, empty.nulls, empty.ranged) == (0, 1, FILES)


def test_depth_is_the_number_of_files_that_values_meet() -> None:
    """Against counting for every value of three overlapping ranges."""
    ranges = [ColumnRange("c", ValueType.LONG, low, high, 0, 10) for low, high in ((0, 9), (10, 19), (0, 19))]
    depth = depth_of(column_bounds(pa.int64(), ranges), np.array([10, 10, 10]))
    assert depth == pytest.approx(2, abs=0.03)
    assert depth_of(column_bounds(pa.int64(), [*ranges, None]), np.array([10, 10, 10, 0])) == pytest.approx(
        depth + 1, abs=0.1
    )
    assert depth_of(column_bounds(pa.int64(), [None, None]), np.array([0, 0])) == 2


def test_one_column_that_is_asked_for_is_sorted_by(table: Path) -> None:
    found = told(
        table, *["select * from t where customer = 17"] * 3, "select id from t where customer between 5 and 50"
    )
    assert found.order is not None
    assert (found.order.columns, found.order.curve) == (("customer",), "linear")
    assert [one.times for one in found.queries] == [3, 1]
    for one in found.queries:
        assert one.files == FILES
        assert one.now == 1
        assert one.after is not None
        assert one.after <= 0.1


def test_two_columns_need_a_curve(table: Path) -> None:
    asked = [f"select * from t where customer between {n} and {n + 300}" for n in range(0, 9000, 1000)]
    asked += [f"select * from t where page like 'http://www.shop.example/0{n}1%'" for n in range(5)]
    found = told(table, *asked)
    assert found.order is not None
    assert set(found.order.columns) == {"customer", "page"}
    assert found.order.curve in ("z_order", "hilbert")
    shares = {one.order: one.share for one in found.tried}
    assert shares[found.order] < 0.8 * min(share for order, share in shares.items() if order.curve == "linear")


def test_a_table_that_suits_its_queries_is_left_alone(table: Path) -> None:
    found = told(table, "select * from t where placed between 1000 and 2000")
    assert found.order is None
    assert found.queries[0].files == 1


def test_rows_of_bucket_tables_are_laid_out_inside_of_their_files(tmp_path: Path) -> None:
    """Rows may not leave their bucket: what is read is counted in row groups, and the settings are compaction's."""
    table = new_table(tmp_path / "t", buckets=2, part=None)
    table.write([row(key, 1, n=key * 7919 % 600) for key in range(600)])
    table.compact()
    reader = TableReader.open(str(tmp_path / "t"))
    given = AdviceSettings(compaction=CompactionPolicy(row_group_rows=60))
    found = advise(reader, ["select * from t where n between 5 and 20"], NAMES, given)
    assert (found.in_buckets, found.files, found.pieces) == (True, 2, 10)
    assert found.order is not None
    assert found.order.columns == ("n",)
    (query,) = found.queries
    assert (query.files, query.now) == (2, 1)
    assert query.after is not None
    assert query.after <= 0.3


def test_without_queries_the_overlapping_columns_are_tried(table: Path) -> None:
    found = told(table)
    assert found.assumed
    assert found.order is not None
    assert "placed" not in found.order.columns
    assert "empty" not in found.order.columns
    times = {one.text.rpartition(" ")[2]: one.times for one in found.queries}
    assert (times["customer"], times["placed"]) == (1, 0)


def test_a_table_without_ranges_is_told_of_its_trouble(tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 1000, 4000)
    file_table(tmp_path / "t", {"n": pa.array(values)}, 4, metadata=False)
    found = told(tmp_path / "t", "select * from t where n = 5")
    assert found.trouble == "the table keeps no column ranges (metadata.column_stats)"
    assert found.order is not None
    assert found.order.columns == ("n",)


def test_nothing_is_proposed_for_a_table_without_rows(tmp_path: Path) -> None:
    new_table(tmp_path / "t")
    found = told(tmp_path / "t", "select * from t where n = 5")
    assert (found.files, found.drawn, found.order) == (0, 0, None)
    assert told(tmp_path / "t").order is None


def test_statements_of_a_file() -> None:
    assert statements("-- hot\nselect 1 from t\n\nselect 2 from t\n") == ["select 1 from t", "select 2 from t"]
    assert statements("select a\nfrom t;\nselect 'x;y' from t;") == ["SELECT a FROM t", "SELECT 'x;y' FROM t"]
    assert statements("select a from t;\nselect (;\n") == ["select a from t", "select ("]


def test_statements_that_do_not_count_are_said() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    texts = ["select * from t where a = 1 and b <> 'x'", "select * from other", "not sql (", "select * from t"]
    asked, left_out = asked_queries(texts, schema, NAMES)
    assert [one.text for one in asked] == [texts[0], texts[3]]
    assert filtered_columns(asked) == {"a": 1}
    assert [one.text for one in left_out] == texts[1:3]
    assert "does not name the table" in left_out[0].why


def test_distinct_values_are_estimated() -> None:
    chance = np.random.default_rng(3)
    few = pa.chunked_array([pa.array(chance.integers(0, 50, 10_000))])
    assert distinct_values(few, 1_000_000) == 50
    keys = pa.chunked_array([pa.array(np.arange(10_000))])
    assert distinct_values(keys, 1_000_000) == 100_000
    assert distinct_values(pa.chunked_array([pa.nulls(10, pa.int64())]), 100) == 0


def test_integers_that_no_double_holds(tmp_path: Path) -> None:
    """As the ordering values of a table merged by its writer."""
    far = pa.array((1 << 62) + np.arange(ROWS))
    file_table(tmp_path, {"far": far}, FILES)
    overlaps = {one.column: one.overlap for one in told(tmp_path).columns}
    assert overlaps["far"] is not None
    assert overlaps["far"].depth == 1
