"""The first rows of a file group as a base file: all readers see them, and the metadata table knows them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from hudilake.format.files.base_file import read_base_file
from hudilake.format.files.bloom import BloomFilter
from hudilake.format.files.file_group_write import WriteResult
from hudilake.format.files.first_write import write_new_file_group
from hudilake.format.files.names import parse_base_name
from hudilake.format.files.parquet_file import footer_of
from hudilake.format.files.view import file_slices
from hudilake.metadata.config import MetadataConfig
from hudilake.read import Incremental, TableReader
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.compaction import run
from hudilake.services.restore import restore
from hudilake.table.table import HudiTable
from tests.binlake.stream.soundness import errors_in
from tests.hudilake.lake import (
    SCHEMA,
    Change,
    Model,
    check,
    commit,
    data_files,
    deletes,
    groups,
    new_table,
    ours,
    storage_at,
    upserts,
)
from tests.hudilake.services.compaction.steps import ALWAYS, serially
from tests.judges.agreement import assert_judges_agree
from tests.judges.hudi_spark import HudiSpark

INDEXED = MetadataConfig()


def first_commit(table: HudiTable, changes: Iterable[Change], least: int = 1) -> tuple[str, list[WriteResult]]:
    """A commit whose file groups do not exist yet."""
    instant = table.begin()
    context = dataclasses.replace(table.write_context(instant), base_from_rows=least)
    results = [r for g in groups(table, changes) for r in write_new_file_group(table.storage, context, g)]
    table.commit(instant, results)
    return instant, results


def loaded(path: Path, metadata: MetadataConfig | None) -> tuple[HudiTable, Model]:
    """Rows and deletes into nothing; then, over them, newer rows, older ones, a deleted key and new file groups."""
    table, model = new_table(path, metadata), Model()
    first = [*upserts(range(50), 10), *deletes(range(50, 60), 10), *upserts(range(5), 10, day="d2")]
    first_commit(table, first)
    model.apply(first)
    for changes in (
        [*upserts(range(3), 20, "newer"), *upserts(range(3, 6), 5, "older"), *deletes([7], 20), *deletes([8], 5)],
        [*upserts(range(50, 55), 9, "late"), *upserts([55], 11, "back"), *upserts([1], 10, day="d3")],
    ):
        commit(table, changes)
        model.apply(changes)
    return table, model


@pytest.mark.parametrize("metadata", [None, INDEXED], ids=["without index", "indexed"])
def test_every_reader_sees_them(tmp_path: Path, metadata: MetadataConfig | None) -> None:
    table, model = loaded(tmp_path / "t", metadata)
    check(tmp_path / "t", model)
    assert errors_in(tmp_path / "t") == []
    based = [s for s in table.file_slices() if s.base_size and "d3" not in s.partition_path]
    assert len(based) == 4
    again = HudiTable.open(storage_at(tmp_path / "t"))
    assert again.file_slices() == file_slices(again.storage, again.timeline)


def test_deletes_that_come_with_them_keep_older_rows_out(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", INDEXED)
    _, results = first_commit(table, [*upserts([1, 3], 10), *deletes([2, 4], 10)])
    assert {r.is_base for r in results} == {False, True}
    commit(table, upserts([2, 4], 9, "older"))
    assert [r["id"] for r in ours(tmp_path / "t")] == [1, 3]


def test_too_few_rows_go_to_a_log_file(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    first_commit(table, [*upserts(range(20), 10), *upserts([1], 10, day="d2"), *deletes([9], 10, day="d3")], least=5)
    bases = [p for p in data_files(tmp_path / "t") if p.endswith(".parquet")]
    assert {p.partition("/")[0] for p in bases} == {"day=d1"}
    assert len(ours(tmp_path / "t")) == 21


def test_what_is_known_of_the_file(tmp_path: Path) -> None:
    """Footer, bloom filter, statistics, commit: as of a base file that a compaction wrote."""
    table = new_table(tmp_path / "t", INDEXED, buckets=1)
    instant, (written,) = first_commit(table, upserts(range(1000), 10))
    data = storage_at(tmp_path / "t").read(written.path)
    footer = footer_of(data, written.path)
    assert (footer["hoodie_min_record_key"], footer["hoodie_max_record_key"]) == ("0", "999")
    bloom = BloomFilter.from_base64("SIMPLE", footer["org.apache.hudi.bloomfilter"])
    assert bloom.might_contain([str(n) for n in range(1000)]).all()
    assert bloom.might_contain([f"no{n}" for n in range(1000)]).sum() < 20
    rows = read_base_file(table.storage, written.path)
    assert set(rows.column("_hoodie_file_name").to_pylist()) == {written.file_name}
    assert set(rows.column("_hoodie_commit_time").to_pylist()) == {instant}
    assert len(set(rows.column("_hoodie_commit_seqno").to_pylist())) == 1000
    assert json.loads(footer["parquet.avro.schema"])["fields"][0]["name"] == "_hoodie_commit_time"
    (stat,) = table.timeline.commit_metadata(table.timeline.completed()[-1]).stats
    assert (stat.num_writes, stat.num_inserts, stat.log_version, stat.file_size) == (1000, 1000, None, len(data))


def test_files_are_skipped_by_the_index(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", INDEXED, buckets=4)
    first_commit(table, [*upserts(range(100), 10), *upserts(range(200, 300), 10, day="d2")])
    reader = TableReader.open(str(tmp_path / "t"))
    for condition, keys, slices in (("qty = 9", 0, 0), ("id = 42", 1, 1), ("id = 4711", 0, 0), ("name = 'zzz'", 0, 0)):
        plan = reader.plan(condition=condition)
        found = sum(batch.num_rows for batch in reader.batches(plan))
        assert (found, len(plan.slices) <= slices) == (keys, True), condition


def test_changes_since_are_told(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", INDEXED)
    first_commit(table, upserts(range(10), 10))
    since = table.timeline.completed()[-1].completion_time
    first_commit(table, upserts(range(5), 10, day="d2"))
    assert since is not None
    found = TableReader.open(str(tmp_path / "t")).read(Incremental(since)).read_all()
    assert sorted(found.column("id").to_pylist()) == list(range(5))
    assert set(found.column("day").to_pylist()) == {"d2"}


def test_a_commit_that_died_is_rolled_back(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", INDEXED)
    instant = table.begin()
    context = dataclasses.replace(table.write_context(instant), base_from_rows=1)
    for group in groups(table, [*upserts(range(9), 10), *deletes([20, 21, 22], 10)]):
        write_new_file_group(table.storage, context, group)
    assert ours(tmp_path / "t") == []
    HudiTable.open(storage_at(tmp_path / "t")).rollback_pending()
    assert data_files(tmp_path / "t") == []


def test_the_same_bytes_each_time(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", INDEXED)
    context = dataclasses.replace(table.write_context(table.begin()), base_from_rows=1)
    (group,) = groups(table, upserts([2], 10))
    first = write_new_file_group(table.storage, context, group)
    before = storage_at(tmp_path / "t").read(first[0].path)
    assert write_new_file_group(table.storage, context, group) == first
    assert storage_at(tmp_path / "t").read(first[0].path) == before
    assert parse_base_name(first[0].file_name) is not None


def test_compaction_goes_on_from_them(tmp_path: Path) -> None:
    table, model = loaded(tmp_path / "t", INDEXED)
    run(table, ALWAYS, serially)
    check(tmp_path / "t", model)
    assert errors_in(tmp_path / "t") == []


def test_a_restore_takes_them_back(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", INDEXED)
    first_commit(table, upserts(range(9), 10))
    then = table.timeline.completed()[-1].requested_time
    first_commit(table, [*upserts(range(5), 10, day="d2"), *deletes([7], 11, day="d2")])
    commit(table, upserts(range(4), 12, "newer"))
    restore(HudiTable.open(storage_at(tmp_path / "t")), then)
    model = Model()
    model.apply(upserts(range(9), 10))
    check(tmp_path / "t", model)
    assert errors_in(tmp_path / "t") == []
    assert not [p for p in data_files(tmp_path / "t") if p.startswith("day=d2")]


def test_cleaning_takes_them_after_a_compaction(tmp_path: Path) -> None:
    table, model = loaded(tmp_path / "t", INDEXED)
    first = {s.base_file.path for s in table.file_slices() if s.base_file is not None}
    run(table, ALWAYS, serially)
    for order in range(30, 33):
        commit(table, upserts([1], order))
        model.apply(upserts([1], order))
    clean(table, CleaningConfig(commits=1))
    live = {s.base_file.path for s in table.file_slices() if s.base_file is not None}
    assert first - live
    assert first & set(data_files(tmp_path / "t")) == first & live  # what had no log file over it
    check(tmp_path / "t", model)
    assert errors_in(tmp_path / "t") == []


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.judge
def test_hudi_spark_sees_them(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    for name, metadata in (("plain", None), ("indexed", INDEXED)):
        _, model = loaded(tmp_path / name, metadata)
        assert_judges_agree(tmp_path / name, model.rows(), spark=hudi_spark, columns=SCHEMA.names)
    skipping = hudi_spark.with_options(hoodie__enable__data__skipping="true").frame(str(tmp_path / "indexed"))
    assert [r["id"] for r in skipping.where("id = 42 and qty = 0").select("id").collect()] == [42]
    assert skipping.where("qty = 77").count() == 0
    table = new_table(tmp_path / "fresh", INDEXED)
    instant, _ = first_commit(table, upserts(range(20), 10))
    optimized = hudi_spark.read_optimized(str(tmp_path / "fresh"))
    assert sorted(r["id"] for r in optimized) == list(range(20))
    first_commit(table, upserts(range(5), 11, day="d2"))
    since = table.timeline.completed()[-2].completion_time
    assert since is not None
    changed = hudi_spark.incremental(str(tmp_path / "fresh"), since)
    assert sorted((r["day"], r["id"]) for r in changed) == [("d2", n) for n in range(5)]
    assert {r["_hoodie_commit_time"] for r in optimized} == {instant}
