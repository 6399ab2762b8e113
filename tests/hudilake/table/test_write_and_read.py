"""Commits of random histories, read back by our reader and by hudi-rs."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudilake.errors import UnsupportedError
from hudilake.format.files.file_group_write import FileGroupWrite, WriteContext, encode_log_file, write_file_group
from hudilake.format.files.log_file import BlockType, iter_blocks
from hudilake.format.files.parquet_file import decode_parquet
from tests.hudilake.lake import (
    ORDER,
    SCHEMA,
    Change,
    Model,
    check,
    commit,
    deletes,
    groups,
    new_table,
    ours,
    rs,
    tree,
    upserts,
)
from tests.hypothesis_profile import scaled


def test_three_commits_with_deletes_and_late_rows(tmp_path: Path) -> None:
    table, model = new_table(tmp_path), Model()
    history = [
        upserts(range(40), 100) + upserts(range(40), 100, day="d2"),
        upserts(range(0, 40, 3), 90, "late") + deletes([1, 4], 110) + deletes([2], 99) + upserts([7], 100, "tie", "d2"),
        upserts([1], 105, "too late") + upserts([4], 111, "back") + deletes([5], 100),
    ]
    for changes in history:
        commit(table, changes)
        model.apply(changes)
        check(tmp_path, model)
    assert len(model.rows()) == 78


def test_without_partitions(tmp_path: Path) -> None:
    table, model = new_table(tmp_path, partitioned=False, buckets=3), Model()
    for changes in (upserts(range(9), 5), deletes([3], 6) + upserts([4], 4, "late")):
        commit(table, changes)
        model.apply(changes)
    check(tmp_path, model)
    assert ".hoodie_partition_metadata" in tree(tmp_path)


def test_a_table_without_commits_reads_as_empty(tmp_path: Path) -> None:
    new_table(tmp_path)
    assert ours(tmp_path) == [] == rs(tmp_path)


@settings(max_examples=scaled(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    history=st.lists(
        st.dictionaries(
            st.tuples(st.sampled_from(["d1", "d/2"]), st.integers(0, 12)),
            st.tuples(st.integers(0, 6), st.one_of(st.none(), st.sampled_from(["", "x", "日本😀", "a,b:c"]))),
            max_size=12,
        ),
        max_size=6,
    )
)
def test_any_history(
    tmp_path_factory: pytest.TempPathFactory, history: list[dict[tuple[str, int], tuple[int, str | None]]]
) -> None:
    path = tmp_path_factory.mktemp("lake")
    table, model = new_table(path), Model()
    for batch in history:
        changes = [Change(key, order, name, day.replace("/", "")) for (day, key), (order, name) in batch.items()]
        commit(table, changes)
        model.apply(changes)
    check(path, model)


def test_a_retried_task_overwrites_its_own_bytes(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    instant = table.begin()
    context = pickle.loads(pickle.dumps(table.write_context(instant)))
    (group,) = groups(table, upserts([1], 1) + deletes([3], 2))
    first = write_file_group(table.storage, context, pickle.loads(pickle.dumps(group)))
    before = (tmp_path / first.path).read_bytes()
    assert write_file_group(table.storage, context, group) == pickle.loads(pickle.dumps(first))
    assert (tmp_path / first.path).read_bytes() == before
    assert first.size_bytes == len(before)
    assert (first.num_upserts, first.num_deletes) == (1, 1)
    assert (first.min_record_key, first.max_record_key) == ("1", "3")


def test_sequence_numbers_are_unique_in_a_commit(tmp_path: Path) -> None:
    table = new_table(tmp_path, buckets=4)
    changes = upserts(range(50), 1) + upserts(range(50), 1, day="d2")
    instant = commit(table, changes)
    numbers = [r["_hoodie_commit_seqno"] for r in ours(tmp_path, ["_hoodie_commit_seqno", "id", "day"])]
    assert len(set(numbers)) == 100
    assert all(n.startswith(f"{instant}_") for n in numbers)


def test_the_data_block_comes_first_and_says_which_commit_it_is(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    instant = table.begin()
    (group,) = groups(table, upserts([1], 1) + deletes([3], 2))
    data, removal = iter_blocks(encode_log_file(table.write_context(instant), group))
    assert (data.block_type, removal.block_type) == (BlockType.PARQUET_DATA, BlockType.DELETE)
    assert data.instant == removal.instant == instant
    rows = decode_parquet(data.content, None, "x").to_pylist()
    assert rows[0]["_hoodie_record_key"] == "1"
    assert rows[0]["_hoodie_partition_path"] == "day=d1"
    assert rows[0]["_hoodie_file_name"] == group.file_id


def _context(schema: pa.Schema) -> WriteContext:
    return WriteContext("t", "20240101000000000", "{}", schema, ORDER)


def _one_row(**columns: pa.Array) -> FileGroupWrite:
    return FileGroupWrite("", "00000000-x-0", pa.table({"_hoodie_record_key": ["1"], **columns}))


def test_a_column_outside_the_schema_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="surprise"):
        encode_log_file(_context(SCHEMA), _one_row(surprise=pa.array([1])))


def test_a_value_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="qty"):
        encode_log_file(_context(SCHEMA), _one_row(qty=pa.array([2**40])))


def test_nulls_where_none_are_allowed_are_refused() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    with pytest.raises(UnsupportedError, match="id"):
        encode_log_file(_context(schema), _one_row())


def test_a_file_group_without_rows_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="without upserts and deletes"):
        encode_log_file(_context(SCHEMA), FileGroupWrite("", "00000000-x-0"))


def test_missing_columns_are_null(tmp_path: Path) -> None:
    table = new_table(tmp_path, partitioned=False)
    instant = table.begin()
    rows = _one_row(id=pa.array([1]), day=pa.array(["d"]), **{ORDER: pa.array([5])})
    table.commit(instant, [write_file_group(table.storage, table.write_context(instant), rows)])
    assert ours(tmp_path) == [{"id": 1, "name": None, "qty": None, "price": None, "at": None, "day": "d", ORDER: 5}]
    assert rs(tmp_path) == ours(tmp_path)
