"""A table kept open: creation, instants, commits, other writers, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudilake import clock
from hudilake.clock import format_instant, now_ms, parse_instant
from hudilake.commit.commit import begin_instant
from hudilake.errors import CommitUnknownError, ConfigError, CorruptDataError, LostOwnershipError, UnsupportedError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.properties import load_properties
from hudilake.format.files.file_group_write import write_file_group
from hudilake.format.timeline.instant import State
from hudilake.locking.ownership import Ownership
from hudilake.storage import open_storage
from hudilake.storage.base import AlreadyExistsError, OutcomeUnknownError, StorageError
from hudilake.table.table import HudiTable
from tests.hudilake.failing_storage import AnsweringStorage, CountingStorage
from tests.hudilake.lake import (
    ORDER,
    SCHEMA,
    Model,
    check,
    commit,
    config,
    groups,
    new_table,
    ours,
    rs,
    tree,
    upserts,
    write,
)


def test_creation(tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    assert not HudiTable.exists(storage)
    with pytest.raises(ConfigError, match="no Hudi table"):
        HudiTable.open(storage)
    table = HudiTable.create(storage, config(), SCHEMA)
    assert HudiTable.exists(storage)
    assert (table.schema, table.config.name, table.timeline.completed()) == (SCHEMA, "t1", [])
    with pytest.raises(AlreadyExistsError):
        HudiTable.create(storage, config(), SCHEMA)
    assert HudiTable.open(storage, config()).schema == SCHEMA


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (pa.schema([f for f in SCHEMA if f.name != ORDER]), ORDER),
        (SCHEMA.append(pa.field("_hoodie_file_name", pa.string())), "names of Hudi.s meta fields"),
        (SCHEMA.append(pa.field("NAME", pa.string())), "case"),
        (SCHEMA.append(pa.field("a.b", pa.string())), "Avro name"),
    ],
)
def test_schemas_that_make_no_table(tmp_path: Path, schema: pa.Schema, problem: str) -> None:
    with pytest.raises((ConfigError, UnsupportedError), match=problem):
        HudiTable.create(open_storage(tmp_path.as_uri()), config(), schema)
    assert tree(tmp_path) == []


def test_extra_metadata_is_the_newest_that_has_the_key(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    assert table.extra_metadata("a") is None
    commit(table, upserts([1], 1), {"a": "1", "b": "1"})
    commit(table, upserts([1], 2), {"a": "2"})
    for reader in (table, HudiTable.open(table.storage)):
        assert (reader.extra_metadata("a"), reader.extra_metadata("b"), reader.extra_metadata("c")) == ("2", "1", None)


def test_values_beside_a_key_are_those_of_its_commit(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    commit(table, upserts([1], 1), {"a": "1", "b": "1"})
    commit(table, upserts([1], 2), {"a": "2", "c": "2"})
    for reader in (table, HudiTable.open(table.storage)):
        assert reader.extra_values("a", "b", "c") == {"a": "2", "c": "2"}
        assert reader.extra_values("b", "a", "c") == {"b": "1", "a": "1"}
        assert reader.extra_values("d", "a") == {}


def test_a_commit_without_files(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    commit(table, upserts([1], 1))
    instant = table.begin()
    table.commit(instant, [], {"position": "7"})
    assert HudiTable.open(table.storage).extra_metadata("position") == "7"
    assert len(ours(tmp_path)) == 1 == len(rs(tmp_path))


def test_times_only_grow(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    times = []
    for order in range(20):
        instant = table.begin()
        times += [instant, table.commit(instant, write(table, instant, upserts([1], order)))]
    assert times == sorted(set(times))


def test_the_clock_jumps_back_an_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 17: instants stay monotonic, also in a new process; far beyond that they are refused."""
    table, model = new_table(tmp_path), Model()
    first = commit(table, upserts([1, 2], 5))
    model.apply(upserts([1, 2], 5))
    real = now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: real - 3_600_000)
    for later_process in (False, True):
        later = commit(HudiTable.open(table.storage) if later_process else table, upserts([2], 6))
        assert later > first
        table.refresh()
    model.apply(upserts([2], 6))
    check(tmp_path, model)
    monkeypatch.setattr("hudilake.commit.preconditions.now_ms", lambda: real - 3 * 3_600_000)
    before = tree(tmp_path)
    with pytest.raises(ConfigError, match="clock"):
        table.begin()
    assert tree(tmp_path) == before


def test_a_refresh_tells_others_from_ourselves(tmp_path: Path) -> None:
    """Case 26: somebody else committed between our batches; the schema and the rows are theirs then."""
    mine = new_table(tmp_path)
    commit(mine, upserts([1], 1))
    assert not mine.refresh()
    other = HudiTable.open(mine.storage)
    instant = other.begin()
    wider = SCHEMA.append(pa.field("extra", pa.string()))
    other.commit(instant, write(other, instant, upserts([2], 2)), {"who": "other"}, wider)
    assert mine.refresh()
    assert mine.schema == wider
    assert mine.extra_metadata("who") == "other"
    assert not mine.refresh()
    assert commit(mine, upserts([3], 3)) > instant
    assert [r["id"] for r in ours(tmp_path)] == [1, 2, 3]


@pytest.mark.parametrize(("old", "new"), [("num.buckets=2", "num.buckets=4"), ("key.fields=id\n", "key.fields=name\n")])
def test_a_configuration_changed_under_us_is_refused(tmp_path: Path, old: str, new: str) -> None:
    """Case 27."""
    table = new_table(tmp_path)
    commit(table, upserts([1], 1))
    file = tmp_path / ".hoodie/hoodie.properties"
    text = file.read_text().replace(old, new)
    file.write_text(
        text.replace("write.recordkey.field=id\n", "write.recordkey.field=name\n") if "key" in new else text
    )
    before = tree(tmp_path)
    with pytest.raises(ConfigError, match="where"):
        table.begin()
    with pytest.raises(ConfigError, match="where"):
        HudiTable.open(table.storage, config())
    assert tree(tmp_path) == before


def test_a_harmless_change_is_taken_over_and_a_foreign_index_stops_us(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    file = tmp_path / ".hoodie/hoodie.properties"
    file.write_text(file.read_text() + "hoodie.table.partition_extractor_class=thing\n")
    table.abort(table.begin())
    assert table.config.extra["hoodie.table.partition_extractor_class"] == "thing"
    file.write_text(file.read_text() + "hoodie.table.metadata.partitions=files,record_index\n")
    with pytest.raises(UnsupportedError, match="cannot keep current: record_index"):
        table.begin()


def test_the_backup_is_read_while_another_writer_changes_the_properties(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    file = tmp_path / ".hoodie/hoodie.properties"
    file.rename(tmp_path / ".hoodie/hoodie.properties.backup")
    assert HudiTable.exists(table.storage)
    assert HudiTable.open(table.storage).config == table.config
    file.write_bytes(b"")
    assert HudiTable.open(table.storage).config == table.config


def _commit_with(table: HudiTable, schema: pa.Schema, **columns: pa.Array) -> None:
    """Upsert row 2 with other columns than the table has."""
    instant = table.begin()
    (group,) = groups(table, upserts([2], 2))
    assert group.upserts is not None
    rows = group.upserts
    for name, column in columns.items():
        rows = rows.drop_columns([name] if name in rows.column_names else []).append_column(name, column)
    result = write_file_group(table.storage, table.write_context(instant, schema), replace(group, upserts=rows))
    table.commit(instant, [result], schema=schema)


def test_a_new_column(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    commit(table, upserts([1, 2], 1))
    wide = SCHEMA.append(pa.field("extra", pa.int32()))
    _commit_with(table, wide, extra=pa.array([7], pa.int32()))
    assert table.schema == wide == HudiTable.open(table.storage).schema
    for rows in (ours(tmp_path, wide.names), rs(tmp_path, wide.names)):
        assert [(r["id"], r["extra"]) for r in rows] == [(1, None), (2, 7)]
    assert set(ours(tmp_path, as_of=table.timeline.completed()[0].requested_time)[0]) == set(SCHEMA.names)


def test_a_wider_column(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    commit(table, upserts([1, 2], 1))
    wide = pa.schema([f.with_type(pa.int64()) if f.name == "qty" else f for f in SCHEMA])
    _commit_with(table, wide, qty=pa.array([2**40]))
    for rows in (ours(tmp_path), rs(tmp_path)):
        assert [(r["id"], r["qty"]) for r in rows] == [(1, 1), (2, 2**40)]
    instant = table.begin()
    with pytest.raises(UnsupportedError, match="qty"):
        table.commit(instant, [], schema=SCHEMA)


def test_results_of_another_instant_or_of_one_file_twice_are_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    first, second = table.begin(), table.begin()
    results = write(table, first, upserts([1], 1))
    for wrong in ((second, results), (first, results + results)):
        with pytest.raises(UnsupportedError, match="lost"):
            table.commit(*wrong)
    table.commit(first, results)
    assert len(rs(tmp_path)) == 1


# -- two writers, lost answers


def test_an_instant_rolled_back_by_another_writer_is_not_published(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    instant = table.begin()
    results = write(table, instant, upserts([1], 1))
    assert HudiTable.open(table.storage).rollback_pending() == [instant]
    with pytest.raises(LostOwnershipError, match="another writer rolled this instant back"):
        table.commit(instant, results)
    assert rs(tmp_path) == []


def test_an_instant_completed_by_another_writer_is_not_published_again(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    instant = table.begin()
    results = write(table, instant, upserts([1], 1))
    twin = HudiTable.open(table.storage)
    twin.commit(instant, results)
    with pytest.raises(LostOwnershipError, match="another writer completed"):
        table.commit(instant, results)
    with pytest.raises(LostOwnershipError, match="another writer completed"):
        table.abort(instant)
    assert len([f for f in tree(tmp_path) if f.endswith(".deltacommit")]) == 1
    assert not any("rollback" in f for f in tree(tmp_path))
    assert len(rs(tmp_path)) == 1


def test_a_millisecond_taken_by_another_writer_is_left_to_it(tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    start = format_instant(now_ms() + 60_000)
    first = begin_instant(storage, clock.InstantClock(start).next_begin, "deltacommit", Ownership(storage, None))
    second = begin_instant(storage, clock.InstantClock(start).next_begin, "deltacommit", Ownership(storage, None))
    assert parse_instant(second.requested_time) == parse_instant(first.requested_time) + 2  # the odd ones are others'


def _completing(method: str, path: str) -> bool:
    return method == "create" and path.endswith(".deltacommit")


def _lost_answer(method: str, path: str, action: Callable[[], object]) -> None:
    if _completing(method, path):
        action()
        raise OutcomeUnknownError("no answer")


def _no_space(method: str, path: str, action: Callable[[], object]) -> None:
    if _completing(method, path):
        raise StorageError("disk full")


def _never_arrived(method: str, path: str, action: Callable[[], object]) -> None:
    if _completing(method, path):
        raise OutcomeUnknownError("no answer")


def _retried_by_the_store(method: str, path: str, action: Callable[[], object]) -> None:
    if _completing(method, path):
        action()
        raise AlreadyExistsError("taken")


def _blind(method: str, path: str, action: Callable[[], object]) -> None:
    if path.endswith(".deltacommit"):
        if method == "create":
            action()
        raise StorageError("503")


@pytest.mark.parametrize("fault", [_lost_answer, _retried_by_the_store])
def test_a_completing_write_whose_answer_is_lost_counts_once(tmp_path: Path, fault: Callable[..., None]) -> None:
    """Case 13: it landed."""
    new_table(tmp_path)
    table = HudiTable.open(AnsweringStorage(open_storage(tmp_path.as_uri()), fault=fault))
    instant = commit(table, upserts([1], 1), {"k": "1"})
    found = table.timeline.find(instant)
    assert found is not None
    assert found.state is State.COMPLETED
    assert HudiTable.open(open_storage(tmp_path.as_uri())).rollback_pending() == []
    assert len(rs(tmp_path)) == 1


@pytest.mark.parametrize(
    ("fault", "error", "visible"),
    [(_no_space, StorageError, False), (_never_arrived, CommitUnknownError, False), (_blind, CommitUnknownError, True)],
)
def test_a_completing_write_that_fails(
    tmp_path: Path, fault: Callable[..., None], error: type[Exception], visible: bool
) -> None:
    """Case 12: never both rolled back and visible; the next start goes by the timeline."""
    new_table(tmp_path)
    table = HudiTable.open(AnsweringStorage(open_storage(tmp_path.as_uri()), fault=fault))
    with pytest.raises(error) as caught:
        commit(table, upserts([1], 1), {"k": "1"})
    assert isinstance(caught.value, CommitUnknownError) == (error is CommitUnknownError)
    restarted = HudiTable.open(open_storage(tmp_path.as_uri()))
    assert bool(restarted.rollback_pending()) != visible
    assert restarted.extra_metadata("k") == ("1" if visible else None)
    assert len(rs(tmp_path)) == int(visible) == len(ours(tmp_path))


def test_space_runs_out_in_a_data_file(tmp_path: Path) -> None:
    """Case 11: the rollback needs no room but for its instants; then the batch is done again."""

    def fault(method: str, path: str, action: Callable[[], object]) -> None:
        if method == "write" and ".log." in path and not path.endswith(".marker.CREATE"):
            raise StorageError("disk full")

    new_table(tmp_path)
    table = HudiTable.open(AnsweringStorage(open_storage(tmp_path.as_uri()), fault=fault))
    instant = table.begin()
    with pytest.raises(StorageError, match="disk full"):
        write(table, instant, upserts([1], 1))
    table.abort(instant)
    commit(HudiTable.open(open_storage(tmp_path.as_uri())), upserts([1], 1))
    assert len(rs(tmp_path)) == 1


def test_the_work_of_a_commit_does_not_grow(tmp_path: Path) -> None:
    """Storage calls and listed names for a refresh and a commit, for a young and for an older table."""
    storage = CountingStorage(open_storage(tmp_path.as_uri()))
    table = HudiTable.create(storage, config(), SCHEMA)
    calls = []
    for order in range(30):
        storage.calls.clear()
        assert not table.refresh()
        commit(table, upserts([1], order), {"k": "v"})
        table.extra_metadata("k")
        calls.append(len(storage.calls))
    assert calls[0] == calls[1] + 3, "the partition and the lock are new in the first commit only"
    assert set(calls[1:]) == {9}


def test_an_empty_completed_file_is_named(tmp_path: Path) -> None:
    """Case 10: Hudi Spark would silently show a table without rows."""
    table = new_table(tmp_path)
    commit(table, upserts([1], 1))
    completed = table.timeline.completed()[0]
    (tmp_path / completed.path).write_bytes(b"")
    with pytest.raises(CorruptDataError) as caught:
        HudiTable.open(table.storage)
    assert caught.value.where["path"] == completed.path


def test_many_new_partitions_at_once(tmp_path: Path) -> None:
    table, model, threads = new_table(tmp_path), Model(), threading.active_count()
    changes = [c for day in range(30) for c in upserts([1], 1, day=f"d{day}")]
    commit(table, changes)
    model.apply(changes)
    check(tmp_path, model)
    metadata = (tmp_path / "day=d7/.hoodie_partition_metadata").read_bytes()
    assert load_properties(metadata) == {
        "commitTime": table.timeline.completed()[0].requested_time,
        "partitionDepth": "1",
    }
    assert threading.active_count() < threads + 9
    assert isinstance(table.config, TableConfig)
