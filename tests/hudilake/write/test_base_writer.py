"""Rows merged over base files: what is written, what is held meanwhile, and how files are split."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudilake.errors import UnsupportedError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.format.files.base_file import BaseFileRows
from hudilake.format.files.file_group_write import FileGroupWrite, WriteResult
from hudilake.format.layout.order import Order
from hudilake.policies import FileSizePolicy, OrderPolicy
from hudilake.table.table import HudiTable
from hudilake.write.base_sink import BaseFileSink
from hudilake.write.form import BaseFileForm
from hudilake.write.group_writer import BaseWriter
from tests.hudilake.lake import (
    ORDER,
    SCHEMA,
    Model,
    check,
    commit,
    data_files,
    deletes,
    groups,
    new_table,
    ours,
    rs,
    sorted_rows,
    storage_at,
    upserts,
    write,
    writer_of,
)

BY_QTY = Order(OrderPolicy(columns=("qty",), curve="linear"))
FILE_ID = "5e1fa3a1-0000-4000-8000-000000000000-0"


def base_writer(table: HudiTable, instant: str, **options: Any) -> BaseWriter:  # noqa: ANN401 - of BaseWriter
    """The writer of an instant; ``options`` replace fields."""
    writer = writer_of(table, table.write_context(instant))
    assert isinstance(writer, BaseWriter)
    return replace(writer, **options)


def copied(path: Path, buckets: int = 1) -> HudiTable:
    """A copy-on-write table without partitions."""
    return new_table(path, table_type="copy_on_write", buckets=buckets, partitioned=False)


def test_a_commit_says_what_hudi_says_of_a_rewritten_base_file(tmp_path: Path) -> None:
    """As in a table that Hudi Spark 1.2.0 wrote: an upsert and a delete over a base file."""
    table, model = copied(tmp_path), Model()
    first = commit(table, upserts(range(6), 100))
    second = upserts([1, 2], 110) + upserts([3], 90, "late") + upserts([7], 110) + deletes([5], 120) + deletes([9], 1)
    instant = commit(table, second)
    model.apply(upserts(range(6), 100))
    model.apply(second)
    check(tmp_path, model)
    (one, two) = table.timeline.completed()
    assert (one.action, one.requested_time, two.requested_time) == ("commit", first, instant)
    assert (tmp_path / f".hoodie/timeline/{instant}.inflight").exists()
    assert (tmp_path / f".hoodie/timeline/{instant}.commit.requested").exists()
    (made,), (stat,) = table.timeline.commit_metadata(one).stats, table.timeline.commit_metadata(two).stats
    assert (made.prev_commit, made.prev_base_file, made.num_inserts, made.num_writes) == ("null", None, 6, 6)
    assert (stat.prev_commit, stat.prev_base_file) == (first, made.file_name)
    assert (stat.num_writes, stat.num_update_writes, stat.num_inserts, stat.num_deletes) == (6, 2, 1, 1)
    assert not table.timeline.commit_metadata(two).compacted
    assert {row["_hoodie_commit_time"] for row in ours(tmp_path, [*SCHEMA.names, "_hoodie_commit_time"])} == {
        first,
        instant,
    }


def test_rows_that_all_came_late_write_no_file(tmp_path: Path) -> None:
    table = copied(tmp_path)
    commit(table, upserts(range(6), 100))
    before, instant = data_files(tmp_path), table.begin()
    assert write(table, instant, upserts([1], 90, "late") + deletes([2], 99) + deletes([77], 5)) == []
    table.commit(instant, [])
    assert data_files(tmp_path) == before


def test_a_task_that_runs_again_writes_the_same(tmp_path: Path) -> None:
    table = copied(tmp_path)
    commit(table, upserts(range(6), 100))
    (group,), instant = groups(table, upserts([1], 200) + deletes([2], 200)), table.begin()
    writer = base_writer(table, instant)
    first = writer.write(table.storage, group)
    data = table.storage.read(first[0].path)
    assert pickle.loads(pickle.dumps(writer)).write(table.storage, group) == first
    assert table.storage.read(first[0].path) == data


def test_partial_rows_change_their_columns(tmp_path: Path) -> None:
    table = copied(tmp_path)
    commit(table, upserts(range(3), 100))
    instant = table.begin()
    part = pa.table({"_hoodie_record_key": ["1"], "name": ["changed"], ORDER: pa.array([100], pa.int64())})
    (whole,) = groups(table, upserts([5], 100))
    writer = base_writer(table, instant)
    table.commit(instant, writer.write(table.storage, replace(whole, partials=(part,))))
    named = {row["id"]: (row["name"], row["qty"]) for row in ours(tmp_path)}
    assert named == {0: ("n0", None), 1: ("changed", 1), 2: ("n2", 2), 5: ("n5", None)}
    assert ours(tmp_path) == rs(tmp_path)
    with pytest.raises(UnsupportedError, match="partial rows cannot be the first"):
        base_writer(table, instant, bases={}).write(table.storage, replace(whole, upserts=None, partials=(part,)))


def test_one_row_group_is_held_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = copied(tmp_path)
    instant, form = table.begin(), BaseFileForm(row_group_rows=500)
    (many,) = groups(table, upserts(range(6_000), 100))
    table.commit(instant, base_writer(table, instant, form=form).write(table.storage, many))
    held: list[int] = []
    read, put = BaseFileRows.row_groups, BaseFileSink._put

    def reading(self: BaseFileRows) -> Any:  # noqa: ANN401 - the same iterator
        for rows in read(self):
            held.append(rows.num_rows)
            yield rows

    def putting(self: BaseFileSink, rows: pa.Table) -> None:
        held.append(rows.num_rows)
        put(self, rows)

    monkeypatch.setattr(BaseFileRows, "row_groups", reading)
    monkeypatch.setattr(BaseFileSink, "_put", putting)
    instant = table.begin()
    (few,) = groups(table, upserts([5, 7_000], 200) + deletes([77], 200))
    (result,) = base_writer(table, instant, form=form).write(table.storage, few)
    assert (result.num_upserts, max(held), len(held)) == (6_000, 500, 24)
    table.commit(instant, [result])
    assert pq.ParquetFile(tmp_path / result.path).num_row_groups == 12


def quantities(path: Path) -> list[int]:
    """A column of a file as it stands there; nulls as -1."""
    return [-1 if qty is None else qty for qty in pq.read_table(path, columns=["qty"])[0].to_pylist()]


def looked_up(path: Path) -> HudiTable:
    """A copy-on-write table whose rows may go to any file group."""
    config = TableConfig("t1", ("id",), ORDER, 0, kind=TableKind("copy_on_write", "simple"))
    return HudiTable.create(storage_at(path), config, SCHEMA)


def written(table: HudiTable, group: FileGroupWrite, target: int, order: Order | None = None) -> list[WriteResult]:
    """One commit of one file group under a target size."""
    instant = table.begin()
    context = replace(table.write_context(instant), states_keys=True)
    sizes = FileSizePolicy(target_bytes=target, small_bytes=target // 2)
    form = BaseFileForm(row_group_rows=100, order=order)
    results = base_writer(table, instant, context=context, sizes=sizes, form=form).write(table.storage, group)
    table.commit(instant, results)
    return results


@pytest.mark.parametrize("order", [None, BY_QTY], ids=["by_key", "by_qty"])
def test_a_file_that_grows_too_large_is_split(tmp_path: Path, order: Order | None) -> None:
    helper, table, target = copied(tmp_path / "routed"), looked_up(tmp_path / "t"), 12_000
    (first,) = groups(helper, upserts(range(99), 1))
    (small,) = written(table, replace(first, file_id=FILE_ID), target, order)
    assert small.size_bytes < target
    changes = upserts(range(50, 2_000), 2) + deletes([1, 2], 2)
    grown = replace(groups(helper, changes)[0], file_id=small.file_id)
    results = written(table, grown, target, order)
    assert len(results) > 2
    most = 2.5 if order is None else 6  # the footer, which tells row groups of 100 rows, is written at the end
    assert all(target <= result.size_bytes <= most * target for result in results)
    assert results[0].file_id == small.file_id
    assert (results[0].replaces, results[1].replaces) == (small.file_name, None)
    assert len({result.file_id for result in results}) == len(results)
    model = Model()
    model.apply(upserts(range(99), 1))
    model.apply(changes)
    expected = sorted_rows(model.rows())
    assert ours(tmp_path / "t") == expected
    assert rs(tmp_path / "t") == expected

    told = [key for result in results if result.keys is not None for key in result.keys.inserted.to_pylist()]
    assert len(told) == len(set(told))  # a new key is told for the file that has it alone
    held: dict[str, set[str]] = {small.file_id: {str(n) for n in range(99)}}
    for result in results:
        assert result.keys is not None
        if result is results[0]:
            assert set(result.keys.deleted.to_pylist()) == {"1", "2"}
        held.setdefault(result.file_id, set()).update(result.keys.inserted.to_pylist())
    for result in results:
        stored = pq.read_table(tmp_path / "t" / result.path, columns=["_hoodie_record_key"])[0].to_pylist()
        assert set(stored) <= held[result.file_id]
        assert result is results[0] or set(stored) == held[result.file_id]
    values = [qty for result in results for qty in quantities(tmp_path / "t" / result.path)]
    assert (values == sorted(values)) == (order is not None)


def test_each_commit_of_a_copied_table_writes_its_files_in_the_order(tmp_path: Path) -> None:
    table, model = copied(tmp_path), Model()
    for changes in (
        upserts(range(20), 100),
        upserts([1, 2], 110, "zz") + upserts([3], 90, "late") + upserts([50], 110, "a") + deletes([5], 120),
        upserts([1], 109, "late") + upserts([2], 130, "b") + upserts([5], 121),
    ):
        instant, (group,) = table.begin(), groups(table, changes)
        writer = base_writer(table, instant, form=BaseFileForm(row_group_rows=4, order=BY_QTY))
        (result,) = writer.write(table.storage, group)
        table.commit(instant, [result])
        model.apply(changes)
        check(tmp_path, model)
        values = quantities(tmp_path / result.path)
        assert values == sorted(values)


def test_files_up_to_twice_the_target_stay_whole(tmp_path: Path) -> None:
    helper, table = copied(tmp_path / "routed"), looked_up(tmp_path / "t")
    group = replace(groups(helper, upserts(range(500), 1))[0], file_id=FILE_ID)
    (alone,) = written(table, group, 1 << 30)
    again = replace(groups(helper, upserts(range(500), 2))[0], file_id=group.file_id)
    (result,) = written(table, again, int(alone.size_bytes * 0.7))
    assert result.size_bytes > alone.size_bytes * 0.9
