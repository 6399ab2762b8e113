"""One commit, dying before and after every storage call; recovery; the same rows as the model.

The control runs the same points over a commit in the wrong order and must see it fail.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudilake.storage.base import Storage
from hudilake.table.table import HudiTable
from tests.hudilake.failing_storage import CountingStorage, DyingStorage, Killed, sides
from tests.hudilake.lake import (
    Change,
    Model,
    check,
    commit,
    data_files,
    deletes,
    new_table,
    ours,
    storage_at,
    tree,
    upserts,
    write,
)

FIRST = upserts(range(10), 100)
BATCH = upserts([1, 2], 200, "new") + deletes([3], 200) + upserts([50, 51], 200, day="d2")
OFFSET = "binlake.offset"


def right_order(table: HudiTable, changes: list[Change]) -> None:
    """What a batch does."""
    instant = table.begin()
    results = write(table, instant, changes)
    table.commit(instant, results, {OFFSET: "2"})


def listed_order(table: HudiTable, changes: list[Change]) -> None:
    """What a batch of many file groups does: its markers are a list."""
    instant = table.begin()
    results = write(table, instant, changes, listed=True)
    table.commit(instant, results, {OFFSET: "2"})


def publish_before_data(table: HudiTable, changes: list[Change]) -> None:
    """The wrong order: the completed file stands before the data files do."""
    instant = table.begin()
    scratch = storage_at(Path(f"{table.storage.uri.removeprefix('file://')}-scratch"))
    results = write(table, instant, changes, scratch)
    table.commit(instant, results, {OFFSET: "2"})
    write(table, instant, changes)


def data_before_marker(table: HudiTable, changes: list[Change]) -> None:
    """The wrong order: data files, and only then their markers."""
    instant = table.begin()
    late = _LateMarkers(table.storage)
    results = write(table, instant, changes, late)
    table.commit(instant, results, {OFFSET: "2"})


class _LateMarkers(CountingStorage):
    """Writes a marker only after the data file it announces."""

    _marker: str | None = None

    def write(self, path: str, data: bytes) -> None:
        if path.endswith(".marker.CREATE"):
            self._marker = path
            return
        super().write(path, data)
        assert self._marker is not None
        super().write(self._marker, b"")


def prepare(path: Path) -> None:
    """A table with one commit."""
    commit(new_table(path), FIRST, {OFFSET: "1"})


def run(path: Path, batch: Callable[[HudiTable, list[Change]], None], storage: Storage) -> bool:
    """One batch on a storage that may die; True if it got through."""
    try:
        batch(HudiTable.open(storage), BATCH)
    except Killed:
        return False
    return True


def recover(path: Path, storage: Storage | None = None) -> None:
    """What the next start does: roll back, and do the batch again unless the table says it is applied."""
    table = HudiTable.open(storage or storage_at(path))
    table.rollback_pending()
    if table.extra_metadata(OFFSET) != "2":
        right_order(table, BATCH)


def verify(path: Path) -> None:
    """Rows as the model has them in both readers, nothing pending, no file without a commit, one commit each."""
    model = Model()
    model.apply(FIRST)
    model.apply(BATCH)
    check(path, model)
    table = HudiTable.open(storage_at(path))
    assert table.timeline.pending() == []
    assert len(table.timeline.completed()) == 2
    named = {stat.path for i in table.timeline.completed() for stat in table.timeline.commit_metadata(i).stats}
    assert set(data_files(path)) == named


def number_of_calls(path: Path, batch: Callable[[HudiTable, list[Change]], None]) -> int:
    """How many storage calls the batch makes."""
    prepare(path)
    storage = CountingStorage(storage_at(path))
    assert run(path, batch, storage)
    return len(storage.calls)


def failing_points(base: Path, batch: Callable[[HudiTable, list[Change]], None], torn: bool) -> list[str]:
    """Every point of death at which recovery does not arrive at the model's rows."""
    failures = []
    for at in range(number_of_calls(base / "count", batch)):
        for before in sides(at):
            path = base / f"{at}-{before}"
            prepare(path)
            storage = DyingStorage(storage_at(path), at=at, before=before, torn=torn)
            assert not run(path, batch, storage)
            recover(path)
            try:
                verify(path)
            except AssertionError:
                failures.append(f"{storage.calls[-1]} before={before}")
            shutil.rmtree(path)
    return failures


@pytest.mark.first(1)
@pytest.mark.parametrize(("order", "torn"), [(right_order, False), (right_order, True), (listed_order, True)])
def test_death_at_every_call(tmp_path: Path, order: Callable[[HudiTable, list[Change]], None], torn: bool) -> None:
    assert failing_points(tmp_path, order, torn) == []


@pytest.mark.full
@pytest.mark.parametrize("wrong", [publish_before_data, data_before_marker])
def test_control_a_wrong_order_is_found(tmp_path: Path, wrong: Callable[[HudiTable, list[Change]], None]) -> None:
    assert failing_points(tmp_path, wrong, False) != []


@pytest.mark.full
def test_death_at_every_call_of_the_recovery(tmp_path: Path) -> None:
    """The batch dies with all its files written; then the recovery dies at every call; then a second one succeeds."""
    dead_at = number_of_calls(tmp_path / "count", right_order) - 3

    def dead(path: Path) -> None:
        prepare(path)
        assert not run(path, right_order, DyingStorage(storage_at(path), at=dead_at))
        assert len(data_files(path)) == 6

    dead(tmp_path / "recovery")
    counting = CountingStorage(storage_at(tmp_path / "recovery"))
    recover(tmp_path / "recovery", counting)
    for at in range(len(counting.calls)):
        for before in sides(at):
            path = tmp_path / f"{at}-{before}"
            dead(path)
            with pytest.raises(Killed):
                recover(path, DyingStorage(storage_at(path), at=at, before=before))
            recover(path)
            verify(path)


def test_the_order_of_calls(tmp_path: Path) -> None:
    """The head of ``commit`` as calls, and how many a commit of one file into a new partition makes."""
    prepare(tmp_path)
    storage = CountingStorage(storage_at(tmp_path))
    table = HudiTable.open(storage)
    storage.calls.clear()
    right_order(table, upserts([60], 300, day="d3"))
    assert [(method, path.rpartition(".")[2].rpartition("/")[2]) for method, path in storage.calls] == [
        ("stat", "properties"),
        ("create", "requested"),
        ("create", "inflight"),
        ("write", "CREATE"),
        ("write", "1_0-0-0"),
        ("list", "timeline"),  # this object's first time under the lock: what did others do?
        ("stat", "properties"),
        ("create", "hoodie_partition_metadata"),
        ("list", "timeline"),
        ("create", "deltacommit"),
        ("delete_tree", storage.calls[-1][1].rpartition("/")[2]),
    ]


def test_no_data_file_before_its_marker(tmp_path: Path) -> None:
    prepare(tmp_path)
    storage = CountingStorage(storage_at(tmp_path))
    right_order(HudiTable.open(storage), BATCH)
    written = [path for method, path in storage.calls if method == "write"]
    for at, path in enumerate(written):
        if not path.endswith(".marker.CREATE"):
            assert written[at - 1].endswith(f"/{path}.marker.CREATE")


def test_no_data_file_before_the_list_of_markers(tmp_path: Path) -> None:
    prepare(tmp_path)
    storage = CountingStorage(storage_at(tmp_path))
    listed_order(HudiTable.open(storage), BATCH)
    first, second, *written = [path.rpartition("/")[2] for method, path in storage.calls if method == "write"]
    assert {first, second} == {"MARKERS0", "MARKERS.type"}
    assert len(written) == 4
    assert all(".log." in name for name in written)


def test_markers_go_with_the_commit(tmp_path: Path) -> None:
    prepare(tmp_path)
    assert not any("/.temp/" in f for f in tree(tmp_path))
    assert len(ours(tmp_path)) == 10
