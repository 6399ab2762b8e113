"""Two writers of a copy-on-write table: commits to different file groups stand side by side, to one they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.commit.commit import OvertakenError
from hudilake.commit.intent import GroupIntent, Intent
from hudilake.locking.choose import LockConfig
from hudilake.locking.ownership import Locking
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import Conflicts
from hudilake.table.table import HudiTable
from tests.hudilake.lake import Change, Model, check, commit, groups, new_table, storage_at, upserts, write


def writer(path: Path, name: str, conflicts: Conflicts = "row") -> HudiTable:
    """A writer that sees the others."""
    return HudiTable.open(storage_at(path), locking=Locking(LockConfig(), name, False), conflicts=conflicts)


def begun(table: HudiTable, changes: list[Change]) -> str:
    """An instant that says what it will write."""
    return table.begin(Intent.of_groups(GroupIntent(g.partition_path, g.file_id) for g in groups(table, changes)))


@pytest.mark.parametrize("first_begun_ends_last", [False, True])
def test_different_file_groups(tmp_path: Path, first_begun_ends_last: bool) -> None:
    one = new_table(tmp_path, MetadataConfig(), table_type="copy_on_write")
    history = upserts(range(6), 1) + upserts(range(6), 1, day="d2")
    commit(one, history)
    a, b, model = writer(tmp_path, "a"), writer(tmp_path, "b"), Model()
    mine, theirs = upserts([1, 2], 5, "a"), upserts([1, 2], 5, "b", "d2")
    pending = [(table, begun(table, changes), changes) for table, changes in ((a, mine), (b, theirs))]
    made = [(table, instant, write(table, instant, changes)) for table, instant, changes in pending]
    for table, instant, results in reversed(made) if first_begun_ends_last else made:
        table.commit(instant, results)
    for changes in (history, mine, theirs):
        model.apply(changes)
    check(tmp_path, model)


@pytest.mark.parametrize("policy", ["queue", "row", "column"])
def test_one_file_group(tmp_path: Path, policy: Conflicts) -> None:
    """Whichever was begun first: the base file of the second would lack the rows of the first."""
    one = new_table(tmp_path, table_type="copy_on_write")
    commit(one, upserts(range(6), 1))
    a, b, model = writer(tmp_path, "a", policy), writer(tmp_path, "b", policy), Model()
    instant = a.begin()
    results = write(a, instant, upserts([1], 5, "a"))
    theirs = b.begin()
    b.commit(theirs, write(b, theirs, upserts([3], 5, "b")))
    with pytest.raises(OvertakenError):
        a.commit(instant, results)
    a.abort(instant)
    a.refresh()
    commit(a, upserts([1], 5, "a"))
    for changes in (upserts(range(6), 1), upserts([3], 5, "b"), upserts([1], 5, "a")):
        model.apply(changes)
    check(tmp_path, model)
