"""What is skipped never held a row that passes: pruned read = unpruned read, for random tables and predicates."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.errors import TransientError, UnsupportedError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.files.file_group_write import write_file_group
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.records.delta import MetadataDelta
from hudilake.read import And, Compare, Constant, Eq, Filter, Ge, In, IndexReads, Or, TableReader
from hudilake.read.filters.expressions import Op
from hudilake.read.lookups import IndexTask
from hudilake.read.plan import SliceScan
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.hudilake.metadata.indexed_table import ORDER
from tests.hudilake.read import oracle
from tests.hudilake.read.lakes import (
    ALL,
    COLUMNS,
    SCHEMA,
    Counting,
    Row,
    everything,
    ids,
    new_table,
    passing,
    random_table,
    row,
    step,
)
from tests.hypothesis_profile import scaled

SEEDS = (1, 2, 3, 4)


class Lakes:
    """Random tables, each made once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made: dict[int, tuple[TableReader, TableReader, list[Row]]] = {}

    def get(self, seed: int) -> tuple[TableReader, TableReader, list[Row]]:
        """(a reader, one that reads the index in tasks, all rows)."""
        if seed not in self._made:
            path = self._root / str(seed)
            random_table(path, seed, part="part" if seed % 2 else None)
            in_tasks = TableReader.open(str(path), reads=IndexReads(0, elsewhere))
            self._made[seed] = TableReader.open(str(path)), in_tasks, everything(path, [RECORD_KEY_FIELD, *ALL])
        return self._made[seed]


def elsewhere(tasks: Sequence[IndexTask]) -> Iterable[bytes]:
    """An executor whose tasks travel as Spark's do."""
    return [pickle.loads(pickle.dumps(task))() for task in tasks]


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Lakes:
    return Lakes(tmp_path_factory.mktemp("lakes"))


def predicates() -> st.SearchStrategy[Filter]:
    """Filters over the tables' columns, keys and partitions often among them."""
    keys = st.integers(-1, 26)
    own = st.one_of(
        st.builds(Compare, st.just("id"), st.sampled_from(list(Op)), keys),
        st.builds(In, st.just("id"), st.lists(keys, max_size=4).map(tuple), st.booleans()),
        st.builds(In, st.just("_hoodie_record_key"), st.lists(keys.map(str), max_size=3).map(tuple)),
        st.builds(Compare, st.just("part"), st.sampled_from(list(Op)), st.sampled_from(["p0", "p1", "p2", "p3"])),
    )
    rest = oracle.filters([name for name in COLUMNS if name != "part"], max_leaves=3)
    return st.recursive(
        st.one_of(own, rest),
        lambda inner: st.one_of(
            st.builds(lambda a, b: And((a, b)), inner, inner), st.builds(lambda a, b: Or((a, b)), inner, inner)
        ),
        max_leaves=3,
    )


@pytest.mark.full
@settings(max_examples=scaled(150), deadline=None)
@given(seed=st.sampled_from(SEEDS), part=predicates())
def test_a_pruned_read_is_an_unpruned_one(lakes: Lakes, seed: int, part: Filter) -> None:
    reader, in_tasks, rows = lakes.get(seed)
    plan = reader.plan(condition=part, columns=["id"])
    assert not plan.warnings
    assert ids(reader, plan) == passing(rows, part)
    other = in_tasks.plan(condition=part, columns=["id"])
    assert not other.warnings
    assert ids(in_tasks, other) == passing(rows, part)


def test_the_control_a_range_that_is_too_tight_loses_rows(tmp_path: Path) -> None:
    """If the reads agreed here, the property above would prove nothing."""
    table = new_table(tmp_path, buckets=1)
    table.write([row(3, 1)])
    instant, results, delta = table.begin_write([row(6, 2, n=50)])
    wrong = [replace(file, ranges=tuple(map(too_tight, file.ranges or ()))) for file in delta.added]
    table.metadata.apply(instant, MetadataDelta(tuple(wrong)))
    table.table.commit(instant, results)
    reader = TableReader.open(str(tmp_path))
    assert passing(everything(tmp_path), Eq("n", 50)) == [6]
    assert ids(reader, reader.plan(condition=Eq("n", 50), columns=["id"])) == []
    assert ids(reader, reader.plan(condition=Ge("n", 0), columns=["id"])) == [3, 6]


def too_tight(item: ColumnRange) -> ColumnRange:
    """The column n lies about its values."""
    return replace(item, min=1, max=2) if item.column == "n" else item


def test_a_file_inside_a_slice_is_never_skipped_alone(tmp_path: Path) -> None:
    """The newest version of a row is in a log file whose statistics exclude the value: without that file the old one
    would come back."""
    table = new_table(tmp_path, buckets=1)
    table.write([row(3, 1, n=5), row(6, 1, n=5)])
    table.compact()
    table.write([row(3, 2, n=900)], deletes=[row(6, 2)])
    reader = TableReader.open(str(tmp_path))
    plan = reader.plan(condition=Eq("n", 5), columns=["id"])
    assert ids(reader, plan) == []
    assert step(plan, "column stats") == (1, 2)
    (only,) = plan.slices
    without_log = replace(plan, slices=(replace(only, log_files=()),))
    assert ids(reader, without_log) == [3, 6]
    assert ids(reader, reader.plan(condition=Eq("n", 7), columns=["id"])) == []
    assert not reader.plan(condition=Eq("n", 7)).slices


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> TableReader:
    """3 partitions of 4 buckets, 120 rows: all compacted, then 12 rows written again into log files."""
    table = new_table(tmp_path_factory.mktemp("wide"))
    table.write([row(key, 1) for key in range(120)])
    table.compact()
    table.write([row(key, 2) for key in range(0, 36, 3)])
    return TableReader.open(table.storage)


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("part = 'p1'", {"partition": (4, 4)}),
        ("part IN ('p1', 'p9')", {"partition": (4, 4)}),
        ("part = 'p1' AND id = 4", {"partition": (4, 4), "bucket": (1, 1), "bloom filters": (1, 1)}),
        ("id = 4", {"bucket": (3, 4), "key range": (2, 3), "bloom filters": (2, 3)}),
        ("_hoodie_record_key = '4'", {"bucket": (3, 4)}),
        ("id IN (1, 4, 7)", {"bucket": (9, 12)}),
        ("price >= 29.5", {"column stats": (2, 2)}),
        ("day = '2024-01-04'", {"column stats": (4, 6)}),
        ("at > '2024-01-05 22:00:00'", {"column stats": (2, 2)}),
        ("name < 'n002'", {"column stats": (2, 3)}),
        ("name LIKE 'n11%'", {"column stats": (10, 13)}),
        ("double > 59.0 OR n = 0", {"column stats": (2, 3)}),
        ("flag IS NULL", {"column stats": (0, 0)}),
        ("n > 1000", {"column stats": (0, 0)}),
        ("lower(name) = 'n001'", {}),
    ],
)
def test_how_many_files_each_step_leaves(wide: TableReader, condition: str, left: dict[str, tuple[int, int]]) -> None:
    plan = wide.plan(condition=condition, columns=["id"], count_all=True)
    assert step(plan, "table") == (12, 16)
    assert {name: step(plan, name) for name in left} == left
    if plan.exact:
        rows = [found for batch in wide.batches(wide.plan()) for found in batch.to_pylist()]
        assert ids(wide, plan) == passing(rows, plan.condition)


def test_a_bloom_filter_finds_out_what_a_range_cannot(tmp_path: Path) -> None:
    """Keys between the smallest and the largest that were never written."""
    table = new_table(tmp_path, buckets=1, part=None)
    table.write([row(key, 1) for key in range(0, 1000, 2)])
    table.compact()
    reader = TableReader.open(table.storage)
    plan = reader.plan(condition="id = 501")
    assert (step(plan, "key range"), step(plan, "bloom filters")) == ((1, 1), (0, 0))
    assert ids(reader, reader.plan(condition="id = 500")) == [500]
    table.write([row(501, 1)])
    reader.refresh()
    assert ids(reader, reader.plan(condition="id = 501")) == [501]


def test_a_table_without_a_metadata_table_works_by_listing(tmp_path: Path) -> None:
    table = new_table(tmp_path, indexed=False)
    instant = table.table.begin()
    context = table.table.write_context(instant)
    groups = table._groups([row(key, 1) for key in range(30)], [], context.arrow_schema)
    table.table.commit(instant, [write_file_group(table.storage, context, group) for group in groups])
    reader = TableReader.open(str(tmp_path))
    plan = reader.plan(condition="id = 4 AND n > 2", columns=["id"])
    assert not plan.warnings
    assert (plan.steps[0].why, [item.name for item in plan.steps]) == (
        "from the storage's listing",
        ["table", "bucket"],
    )
    assert ids(reader, plan) == [4]


def test_above_the_threshold_the_index_is_read_by_the_executor(wide: TableReader) -> None:
    asked: list[int] = []

    def executor(tasks: Sequence[IndexTask]) -> Iterable[bytes]:
        asked.append(len(tasks))
        return elsewhere(tasks)

    below = TableReader.open(wide.table.storage, reads=IndexReads(16 * 2, executor))
    above = TableReader.open(wide.table.storage, reads=IndexReads(16 * 2 - 1, executor))
    condition = "n > 3 AND price < 5"
    assert below.plan(condition=condition).slices == wide.plan(condition=condition).slices
    assert not asked
    assert above.plan(condition=condition).slices == wide.plan(condition=condition).slices
    assert asked == [1]


def test_an_executor_that_fails_leaves_every_file(wide: TableReader) -> None:
    def broken(tasks: Sequence[IndexTask]) -> Iterable[bytes]:
        raise TransientError("no executors")

    reader = TableReader.open(wide.table.storage, reads=IndexReads(0, broken))
    plan = reader.plan(condition="n > 1000")
    assert len(plan.slices) == 12
    assert ["no executors" in str(warning) for warning in plan.warnings] == [True]


def test_conditions_that_make_no_sense_are_refused(wide: TableReader) -> None:
    with pytest.raises(UnsupportedError, match="nope"):
        wide.plan(condition=Eq("nope", 1))
    with pytest.raises(UnsupportedError, match="nope"):
        wide.plan(columns=["nope"])
    with pytest.raises(UnsupportedError, match="cannot be compared"):
        wide.plan(condition=Eq("id", "1"))
    with pytest.raises(UnsupportedError, match=r"LOWER\(name\)"):
        wide.read(condition="id = 1 AND lower(name) = 'n001'")


def test_what_is_not_understood_is_left_to_the_caller(wide: TableReader) -> None:
    plan = wide.plan(condition="id < 3 AND lower(name) = 'n001'", columns=["id"])
    assert not plan.exact
    assert [str(warning) for warning in plan.warnings] == [
        "condition: not understood, left to the caller: LOWER(name) = 'n001'"
    ]
    assert ids(wide, plan) == [0, 1, 2]


def test_pyarrow_expressions_are_evaluated_by_arrow(wide: TableReader) -> None:
    condition = (pc.field("id") < 3) & (pc.utf8_upper(pc.field("name")) == "N001")
    plan = wide.plan(condition=condition, columns=["name"])
    assert plan.exact
    assert not plan.warnings
    assert len(plan.slices) < 12
    assert wide.read(condition=condition, columns=["name"]).read_all().to_pydict() == {"name": ["n001"]}


def test_batches_are_bounded_and_columns_in_the_order_asked(wide: TableReader) -> None:
    plan = wide.plan(columns=["name", "_hoodie_record_key", "id"], batch_rows=4)
    batches = list(wide.batches(plan))
    assert max(batch.num_rows for batch in batches) == 4
    assert {tuple(batch.schema.names) for batch in batches} == {("name", "_hoodie_record_key", "id")}
    assert plan.scan.schema.types == [pa.string(), pa.string(), pa.int64()]
    assert sum(batch.num_rows for batch in batches) == 120


def test_a_plan_travels(wide: TableReader) -> None:
    """A task reads one slice of a plan made elsewhere."""
    plan = wide.plan(condition="n > 100", columns=["id"])
    scan, slices = pickle.loads(pickle.dumps((plan.scan, plan.slices)))
    assert isinstance(scan, SliceScan)
    found = [key for item in slices for batch in scan.read(item) for key in batch.column("id").to_pylist()]
    assert sorted(found) == ids(wide, plan)
    assert len(pickle.dumps(plan.scan)) < 20_000


def test_constants(wide: TableReader) -> None:
    assert not wide.plan(condition=Constant(None)).slices
    assert len(wide.plan(condition=Constant(True)).slices) == 12
    assert not wide.plan(condition="id = NULL").slices


def test_the_writers_own_metadata_table_is_what_a_reader_skips_by(tmp_path: Path) -> None:
    """Through the writer itself, which keeps it in every commit; and the writer finds the same slices by it."""
    config = TableConfig("t", ("id",), ORDER, 4, partition_fields=("part",))
    storage = open_storage(str(tmp_path))
    table = HudiTable.create(storage, config, SCHEMA, MetadataConfig())
    helper = new_table(tmp_path.parent / "helper", indexed=False)
    for number, keys in enumerate((range(40), range(0, 40, 7)), 1):
        instant = table.begin()
        context = table.write_context(instant)
        groups = helper._groups([row(key, number) for key in keys], [], context.arrow_schema)
        table.commit(instant, [write_file_group(storage, context, group) for group in groups])
        table.maintain()
    counting = Counting(storage)
    reader = TableReader.open(counting)
    plan = reader.plan(condition="n > 60", columns=["id"], count_all=True)
    assert (plan.warnings, plan.steps[0].why) == ((), "from the metadata table")
    assert list(reader.plan().slices) == HudiTable.open(storage).file_slices()
    assert ids(reader, plan) == [35]
    assert len(plan.slices) < 12
    assert not [path for method, path in counting.calls if method == "list" and "part=" in path]
