"""Compaction, restore and death at every storage call: the record index still says where every row is."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.format.files.view import file_slices
from hudilake.metadata.live_keys import live_keys
from hudilake.policies import IndexType
from hudilake.services.compaction import CompactionConfig, run
from hudilake.services.fsck import fsck
from hudilake.services.restore import restore
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable
from tests.hudilake.failing_storage import Killed, sides
from tests.hudilake.metadata.below import Dying
from tests.hudilake.metadata.record_index.keyed_table import Group, KeyedTable, file_id, said
from tests.hypothesis_profile import is_nightly
from tests.judges import hudi_rs

FORMS = pytest.mark.parametrize("index", ["record_index", "partitioned_record_index"])
EU, US, AP = ("region=eu", file_id(1)), ("region=us", file_id(2)), ("region=ap", file_id(3))
#: Inserts, deletes, a new partition, and a key that comes back elsewhere: (ids to insert, ids to delete) a file group.
LAST: dict[Group, tuple[list[int], list[int]]] = {
    EU: ([], [1, 2]),
    US: ([], [12]),
    AP: ([1, 50], []),
    ("region=eu", file_id(4)): ([60], []),
}


def _table(path: Path, index: IndexType) -> KeyedTable:
    table = KeyedTable(path, index)
    table.insert("eu", 1, range(10))
    table.insert("us", 2, range(10, 20))
    table.commit({EU: ([], [3])})
    return table


def _by_files(table: HudiTable) -> dict[tuple[str, str], Group]:
    by_partition = table.config.kind.scope.by_partition
    return {
        (piece.partition_path if by_partition else "", key): (piece.partition_path, piece.file_id)
        for piece in file_slices(table.storage, table.timeline)
        for key in live_keys(table.storage, piece, table.config.ordering_field, table.timeline).to_pylist()
    }


@FORMS
def test_a_compaction_moves_no_key(tmp_path: Path, index: IndexType) -> None:
    table = _table(tmp_path / "t", index)
    config = CompactionConfig(tombstone_retention_hours=0)
    assert run(table.table, config, lambda function, items: list(map(function, items)), now=True)
    table.commit({US: ([], [11])})
    assert said(table.reopen()) == table.truth == _by_files(table.table)
    assert fsck(table.storage).findings == ()


@FORMS
def test_a_restored_table(tmp_path: Path, index: IndexType) -> None:
    """The index is built anew from the files of that moment; rows go on moving."""
    table = _table(tmp_path / "t", index)
    before = dict(table.truth)
    moment = table.table.timeline.completed()[-1].requested_time
    table.commit(LAST)
    opened = table.reopen()
    assert restore(opened, moment, table.metadata) is not None
    table.truth = before
    assert said(table.reopen()) == before == _by_files(table.table)
    table.commit(LAST)
    assert said(table.reopen()) == table.truth == _by_files(table.table)


def _dies_well(path: Path, index: IndexType, at: int, before: bool) -> bool:
    """Commit until it dies at a call, recover, and check what is there; False if it makes fewer calls."""
    table = _table(path, index)
    old = dict(table.truth)
    dying = Dying(LocalStorage(path, fsync=False), at=-1)
    table.storage = dying
    table.reopen()
    dying.calls.clear()
    dying.at, dying.before = at, before
    try:
        table.commit(LAST)
    except Killed:
        died = True
    else:
        died = False
    new = {**old, **{table._key(group, n): group for group, (ids, _) in LAST.items() for n in ids}}
    for gone in [table._key(group, n) for group, (_, ids) in LAST.items() for n in ids]:
        if new[gone] == old.get(gone):
            del new[gone]
    table.storage = LocalStorage(path, fsync=False)
    opened = table.reopen()
    opened.rollback_pending()
    places = said(opened)
    assert places in (old, new)
    assert _by_files(opened) == places
    ids = sorted(int(key) for _, key in places)
    assert sorted(hudi_rs.snapshot(path).column("id").to_pylist()) == ids
    table.truth = dict(places)
    table.insert("ap", 90 + at, [1000])
    assert said(table.reopen()) == table.truth
    return died


@pytest.mark.first(1)
@FORMS
def test_death_at_every_call(tmp_path: Path, index: IndexType) -> None:
    """The metadata table is compacted after this commit; in a usual run every few calls."""
    at, turn = (0, 0) if index == "record_index" else (1, 1)
    alive = True
    while alive:
        for before in sides(turn):
            alive = _dies_well(tmp_path / f"{before}{at}", index, at, before)
        at, turn = at + (1 if is_nightly() else 7), turn + 1
    assert at > 50
