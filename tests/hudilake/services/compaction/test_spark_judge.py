"""Hudi Spark 1.2.0 and hudi-rs read what we compact; Hudi Spark compacts after us and executes our plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hudilake.format.definition.bucket import bucket_ids, bucket_of_file_id
from hudilake.format.files.file_group_write import write_file_group
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.services import compaction as metadata_compaction
from hudilake.metadata.services.upkeep import maintain
from hudilake.policies import OrderPolicy
from hudilake.services.compaction import (
    CompactedFile,
    CompactionConfig,
    CompactionOperation,
    complete,
    execute,
    finish_pending,
    prepare,
    run,
    schedule,
)
from hudilake.services.fsck import fsck
from hudilake.table.table import HudiTable
from tests.hudilake.lake import SCHEMA, Change, Model, deletes, groups, row_of, storage_at, upserts, write
from tests.hudilake.metadata.spark_index import SparkIndex
from tests.hudilake.services.compaction.steps import add, die_before_publishing, new, scheduled, serially
from tests.hypothesis_profile import usually
from tests.judges import hudi_rs
from tests.judges.agreement import assert_judges_agree, assert_same
from tests.judges.hudi_spark import HudiSpark
from tests.spark_session import configured

pytestmark = [pytest.mark.spark, pytest.mark.judge]

KEPT = CompactionConfig(after_commits=1, tombstone_retention_hours=1, row_group_rows=4)
indexed = pytest.mark.parametrize("indexed", usually([True], [False, True]))
INDEX = ("hoodie.metadata.index.bloom.filter.enable", "hoodie.metadata.index.column.stats.enable")


@pytest.fixture
def hudi(spark: SparkSession, indexed: bool) -> Iterator[SparkSession]:
    """A session whose Hudi writers and procedures keep the metadata table as the table has it."""
    flag = str(indexed).lower()
    conf = {"hoodie.metadata.enable": flag, **dict.fromkeys(INDEX, flag)}
    conf |= {"hoodie.compact.inline.max.delta.commits": "1"}
    with configured(spark, conf) as session:
        yield session


def agree(path: Path, model: Model, spark: HudiSpark) -> None:
    """All three readers, and what fsck has to say."""
    assert_judges_agree(path, model.rows(), spark=spark, columns=SCHEMA.names)
    assert [f for f in fsck(storage_at(path)).findings if f.severity == "error"] == []


def call(session: SparkSession, path: Path, operation: str) -> list[Any]:
    """Hudi's own compaction procedure."""
    return session.sql(f"CALL run_compaction(op => '{operation}', path => '{path}')").collect()


def hudi_write(session: SparkSession, path: Path, changes: Iterable[Change], **services: str) -> None:
    """An upsert by Hudi's writer; ``services``: its further options, dots written as ``__``."""
    fields = "id long, name string, qty int, price decimal(10,2), at timestamp, day string, _binlake_order long"
    frame = session.createDataFrame([tuple(row_of(c).values()) for c in changes], fields)
    options = {
        "hoodie.table.name": "t1",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.embed.timeline.server": "false",
        **{name: session.conf.get(name) or "" for name in ("hoodie.metadata.enable", *INDEX)},
        **{name.replace("__", "."): value for name, value in services.items()},
    }
    frame.write.format("hudi").options(**options).mode("append").save(str(path))


@pytest.mark.full
@indexed
def test_all_reads_of_a_compacted_table(tmp_path: Path, hudi_spark: HudiSpark, indexed: bool) -> None:
    """Snapshot, read-optimized, time travel, and increments by the rows' original commit times."""
    table, model, uri = *new(tmp_path, indexed), str(tmp_path)
    commits = table.timeline.completed()
    before = model.rows()
    (done,) = run(table, KEPT, serially)
    agree(tmp_path, model, hudi_spark)
    assert_same("read-optimized", hudi_spark.read_optimized(uri), before, SCHEMA.names)
    changed = hudi_spark.incremental(uri, commits[0].completion_time or "")
    assert changed == []  # the second commit's upserts were late, the rest of it are deletes
    assert_same("from the beginning", hudi_spark.incremental(uri, "000"), before, SCHEMA.names)
    assert_same("hudi-rs", hudi_rs.incremental(uri, "000"), before, SCHEMA.names)
    assert {r["_hoodie_commit_time"] for r in hudi_spark.snapshot(uri)} == {commits[0].requested_time}

    late = upserts([3, 4], 105, "too late") + upserts([7], 300, "new") + deletes([8], 300)
    instant = add(table, model, late)
    agree(tmp_path, model, hudi_spark)
    assert_same("read-optimized", hudi_spark.read_optimized(uri), before, SCHEMA.names)
    assert_same("as of the compaction", hudi_spark.as_of(uri, done.requested_time), before, SCHEMA.names)
    run(table, KEPT, serially)
    agree(tmp_path, model, hudi_spark)
    assert_same("read-optimized", hudi_spark.read_optimized(uri), model.rows(), SCHEMA.names)
    newest = [r for r in model.rows() if r["id"] == 7 and r["day"] == "d1"]
    assert_same("increment", hudi_spark.incremental(uri, done.completion_time or ""), newest, SCHEMA.names)
    assert {r["_hoodie_commit_time"] for r in hudi_spark.incremental(uri, done.completion_time or "")} == {instant}
    add(table, model, upserts([3], 106, "still too late") + upserts([4], 400, "back"))
    agree(tmp_path, model, hudi_spark)


@pytest.mark.full
@indexed
def test_commits_while_a_compaction_is_pending(tmp_path: Path, hudi_spark: HudiSpark, indexed: bool) -> None:
    """At every step, the plan being in the timeline."""
    table, model = new(tmp_path, indexed)
    early = table.begin()
    changes = upserts([8], 300, "early") + deletes([9], 300)
    results = write(table, early, changes)
    requested = scheduled(table, KEPT)
    agree(tmp_path, model, hudi_spark)
    table.commit(early, results)
    model.apply(changes)
    agree(tmp_path, model, hudi_spark)
    job = prepare(table, requested, KEPT)
    add(table, model, upserts([5], 300, "in flight") + upserts([70], 1, day="d3"))
    made = execute(job, serially)
    agree(tmp_path, model, hudi_spark)
    complete(table, job.instant, made)
    agree(tmp_path, model, hudi_spark)
    add(table, model, deletes([5], 301) + upserts([9], 299, "late"))
    run(table, KEPT, serially)
    agree(tmp_path, model, hudi_spark)


@pytest.mark.full
def test_a_compaction_that_died_between_index_and_commit(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    """What it told the metadata table is invisible, is taken back, and told again; also over the index's compaction."""
    table, model = new(tmp_path, True)
    job = prepare(table, scheduled(table, KEPT), KEPT)
    die_before_publishing(table, job)
    agree(tmp_path, model, hudi_spark)
    again = HudiTable.open(storage_at(tmp_path), metadata=MetadataConfig(compact_after=2, compact_at_most=2))
    add(again, model, upserts([1], 500, "meanwhile"))
    assert len(finish_pending(again, KEPT, serially)) == 1
    agree(tmp_path, model, hudi_spark)
    index = again.metadata_table
    assert index is not None
    with again.state.lock:
        assert maintain(index)
    agree(tmp_path, model, hudi_spark)


@pytest.mark.full
@indexed
def test_hudi_compacts_after_us_and_we_after_it(
    tmp_path: Path, hudi: SparkSession, hudi_spark: HudiSpark, indexed: bool
) -> None:
    table, model = new(tmp_path, indexed)
    run(table, KEPT, serially)
    add(table, model, upserts([1], 500, "ours") + deletes([2], 500))
    assert call(hudi, tmp_path, "scheduleAndExecute")
    agree(tmp_path, model, hudi_spark)
    table = HudiTable.open(storage_at(tmp_path))
    assert table.timeline.completed()[-1].action == "commit"
    theirs = upserts([1, 61], 600, "hudi")
    hudi_write(hudi, tmp_path, theirs)
    model.apply(theirs)
    table = HudiTable.open(storage_at(tmp_path))
    add(table, model, upserts([61], 550, "late") + upserts([5], 600, "ours"))
    assert len(run(table, KEPT, serially)) == 1
    agree(tmp_path, model, hudi_spark)
    hudi_write(hudi, tmp_path, upserts([62], 700, "hudi"))
    model.apply(upserts([62], 700, "hudi"))
    agree(tmp_path, model, hudi_spark)


@pytest.mark.full
@indexed
def test_hudi_executes_our_plan_and_we_its_own(
    tmp_path: Path, hudi: SparkSession, hudi_spark: HudiSpark, indexed: bool
) -> None:
    table, model = new(tmp_path, indexed)
    ours = schedule(table, KEPT)
    assert ours is not None
    add(table, model, upserts([1], 500, "after our plan"))
    hudi.sql(
        f"CALL run_compaction(op => 'execute', path => '{tmp_path}', timestamp => {ours.requested_time})"
    ).collect()
    agree(tmp_path, model, hudi_spark)
    table = HudiTable.open(storage_at(tmp_path))
    assert ours.requested_time in {i.requested_time for i in table.timeline.completed()}
    call(hudi, tmp_path, "schedule")
    table = HudiTable.open(storage_at(tmp_path))
    (theirs,) = table.timeline.pending()
    add(table, model, upserts([1], 501, "after their plan"))
    assert [i.requested_time for i in finish_pending(table, KEPT, serially)] == [theirs.requested_time]
    agree(tmp_path, model, hudi_spark)


@pytest.mark.full
@indexed
def test_hudi_compacts_cleans_and_archives_between_our_compactions(
    tmp_path: Path, hudi: SparkSession, hudi_spark: HudiSpark, indexed: bool
) -> None:
    """Log files of restated tombstones and archived compactions of ours among what it tidies up."""
    table, model = new(tmp_path, indexed)
    for turn in range(3):
        add(table, model, upserts([turn], 200 + turn, "ours") + deletes([5 + turn], 200 + turn))
        run(table, KEPT, serially)
    if table.metadata_table is not None:
        # A Hudi writer whose JVM begins by compacting a metadata table fails for good, on tables of its own too.
        with table.state.lock:
            metadata_compaction.compact(table.metadata_table)
    services = {
        "hoodie__compact__inline": "true",
        "hoodie__compact__inline__max__delta__commits": "2",
        "hoodie__clean__commits__retained": "1",
        "hoodie__keep__min__commits": "2",
        "hoodie__keep__max__commits": "3",
    }
    for turn in range(4):
        theirs = upserts([turn, 30 + turn], 700 + turn, "hudi")
        hudi_write(hudi, tmp_path, theirs, **services)
        model.apply(theirs)
        agree(tmp_path, model, hudi_spark)
    table = HudiTable.open(storage_at(tmp_path))
    assert table.timeline.history().files
    add(table, model, upserts([0], 650, "late") + deletes([31], 800))
    assert len(run(table, KEPT, serially)) == 1
    add(table, model, upserts([31], 750, "late"))
    agree(tmp_path, model, hudi_spark)


@pytest.mark.full
@indexed
def test_a_schema_that_changes_between_base_files_and_logs(
    tmp_path: Path, hudi_spark: HudiSpark, indexed: bool
) -> None:
    """Columns added, widened and dropped, before and after compactions."""
    table, model = new(tmp_path, indexed)
    run(table, KEPT, serially)
    wide = pa.schema([f if f.name != "qty" else pa.field("qty", pa.int64()) for f in SCHEMA]).append(
        pa.field("extra", pa.string())
    )
    changes = upserts([1, 2, 80], 500, "wide")
    _commit_wide(table, changes, wide)
    model.apply(changes)
    expected = [{**r, "extra": "x" if r["name"].startswith("wide") else None} for r in model.rows()]
    assert_judges_agree(tmp_path, expected, spark=hudi_spark, columns=wide.names)
    run(table, KEPT, serially)
    assert_judges_agree(tmp_path, expected, spark=hudi_spark, columns=wide.names)
    assert_same("read-optimized", hudi_spark.read_optimized(str(tmp_path)), expected, wide.names)


def _commit_wide(table: HudiTable, changes: Iterable[Change], wide: pa.Schema) -> None:
    """One commit of upserts under a wider schema."""
    instant = table.begin()
    context = table.write_context(instant, wide)
    results = []
    for group in groups(table, changes):
        assert group.upserts is not None
        rows = group.upserts.append_column("extra", pa.array(["x"] * group.upserts.num_rows))
        results.append(write_file_group(table.storage, context, replace(group, upserts=rows)))
    table.commit(instant, results, schema=wide)


@pytest.mark.full
def test_hudi_finds_the_base_files_in_the_index(tmp_path: Path, spark: SparkSession) -> None:
    """Its lookups of listings, statistics and bloom filters, asked for the files of a compaction."""
    table, model = new(tmp_path, True)
    run(
        table, KEPT.model_copy(update={"tombstone_retention_hours": 0}), serially
    )  # a filter under a log file rules nothing out
    index = SparkIndex(spark, tmp_path)
    for found in table.file_slices():
        assert found.base_file is not None
        file = found.partition_path, str(found.base_file.name)
        assert index.files(found.partition_path)[file[1]] == found.base_size
        ids = [r["id"] for r in model.rows() if f"day={r['day']}" == found.partition_path]
        keys = [
            str(i)
            for i in ids
            if int(bucket_ids(pa.array([str(i)]), ("id",), 2)[0]) == bucket_of_file_id(found.file_id)
        ]
        assert index.members(file, keys) == [True] * len(keys)
        assert sum(index.members(file, [f"none{n}" for n in range(200)])) < 5
        low, high, nulls, count = index.column_stats([file], "id")[file]
        assert (low, high, nulls, count) == (min(map(int, keys)), max(map(int, keys)), 0, len(keys))


def test_tasks_on_spark(tmp_path: Path, spark: SparkSession, hudi_spark: HudiSpark) -> None:
    """One task a file group, in Spark's own worker processes."""

    def on_spark(
        task: Callable[[CompactionOperation], CompactedFile], operations: Sequence[CompactionOperation]
    ) -> list[CompactedFile]:
        return spark.sparkContext.parallelize(operations, len(operations)).map(task).collect()

    table, model = new(tmp_path, True)
    (done,) = run(table, KEPT, on_spark)
    assert len(table.timeline.commit_metadata(done).stats) > 4
    agree(tmp_path, model, hudi_spark)


def test_control_a_tombstone_left_out_is_seen(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    table, model = new(tmp_path, False)
    run(table, KEPT.model_copy(update={"tombstone_retention_hours": 0}), serially)
    add(table, model, upserts([3], 105, "late"))
    with pytest.raises(AssertionError, match="late3"):
        agree(tmp_path, model, hudi_spark)


@pytest.mark.full
def test_many_rounds_beside_hudi_with_an_index(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    """Ten compactions, each over late and new events and deletes; the index is compacted in between."""
    table, model = new(tmp_path, True)
    for turn in range(10):
        add(table, model, upserts([turn % 4, 20 + turn], 500 + turn, "turn") + deletes([(turn + 2) % 4], 500 + turn))
        add(table, model, upserts(range(4), 499 + turn, "late"))
        run(table, KEPT, serially)
        assert table.maintain() is None
    agree(tmp_path, model, hudi_spark)


@pytest.mark.full
@pytest.mark.parametrize("indexed", [True])
def test_base_files_in_another_order_than_the_keys(
    tmp_path: Path, hudi: SparkSession, hudi_spark: HudiSpark, indexed: bool
) -> None:
    """Both judges read them, Hudi writes on to them and compacts them, and we after it; conditions by which a judge may
    skip row groups and pages show no older event in the place of a skipped row."""
    order = OrderPolicy(columns=("qty", "name"), curve="z_order")
    laid_out = KEPT.model_copy(update={"order_by": order, "row_group_rows": 2})
    table, model = new(tmp_path, indexed)
    run(table, laid_out, serially)
    agree(tmp_path, model, hudi_spark)
    add(table, model, upserts([5, 6], 50, "older") + upserts([7, 30], 200, "ours") + deletes([8], 300))
    agree(tmp_path, model, hudi_spark)
    for name, count in (("older5", 0), ("n5", 1), ("n7", 0), ("ours7", 1), ("n8", 0), ("ours30", 1)):
        expected = [row for row in model.rows() if row["name"] == name]
        assert len(expected) == count
        shown = hudi_spark.frame(str(tmp_path)).where(f"name = '{name}'").collect()
        assert sorted((row["id"], row["day"]) for row in shown) == [(row["id"], row["day"]) for row in expected]
        filtered = [row for row in hudi_rs.where(tmp_path, ("name", "=", name)).to_pylist() if row["name"] == name]
        assert_same("hudi-rs", filtered, expected, SCHEMA.names)

    theirs = upserts([1, 61], 600, "hudi") + upserts([6], 40, "oldest")
    hudi_write(hudi, tmp_path, theirs)
    model.apply(theirs)
    agree(tmp_path, model, hudi_spark)
    assert call(hudi, tmp_path, "scheduleAndExecute")
    agree(tmp_path, model, hudi_spark)
    table = HudiTable.open(storage_at(tmp_path))
    add(table, model, upserts([61], 550, "late") + upserts([5], 600, "ours"))
    (done,) = run(table, laid_out, serially)
    agree(tmp_path, model, hudi_spark)
    written = {s.file_name for s in table.timeline.commit_metadata(done).stats if s.file_name.endswith(".parquet")}
    assert written
    assert all(pq.read_metadata(path).row_group(0).column(5).has_column_index for path in bases(tmp_path, written))


def bases(path: Path, names: Iterable[str]) -> list[Path]:
    """Files of a table by their names."""
    return [found for found in path.rglob("*.parquet") if found.name in names]
