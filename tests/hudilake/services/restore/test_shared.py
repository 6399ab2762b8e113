"""A restore beside others that have the table open: living writers stop it, readers follow it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.errors import LostOwnershipError
from hudilake.locking.choose import LockConfig
from hudilake.locking.ownership import Locking
from hudilake.read import Snapshot, TableReader
from hudilake.services.compaction import prepare, schedule
from hudilake.services.restore import plan_restore, restore
from hudilake.table.table import HudiTable
from tests.hudilake.lake import SCHEMA, commit, sorted_rows, storage_at, tree, upserts, write
from tests.hudilake.services.cleaning.aged import COMPACTION, INDEX
from tests.hudilake.services.restore.past import Past

indexed = pytest.mark.parametrize("indexed", [False, True])


def opened(past: Past, owner: str) -> HudiTable:
    """As one of several processes."""
    return HudiTable.open(
        storage_at(past.path), metadata=INDEX if past.indexed else None, locking=Locking(LockConfig(), owner)
    )


@indexed
def test_a_living_writer_stops_it(tmp_path: Path, indexed: bool) -> None:
    past = Past(tmp_path, indexed)
    past.live(2)
    wanted = past.moments[1][0]
    writer, operator = opened(past, "writer"), opened(past, "operator")
    instant = writer.begin()
    results = write(writer, instant, upserts([1], 900))
    before = tree(tmp_path)
    with pytest.raises(LostOwnershipError, match="deltacommit of another writer"):
        restore(operator, wanted)
    assert tree(tmp_path) == before
    writer.commit(instant, results)
    seen = plan_restore(opened(past, "operator"), wanted)
    commit(writer, upserts([2], 901))
    with pytest.raises(LostOwnershipError, match="since the restore was planned"):
        restore(operator, wanted, agreed=seen)


def test_a_living_compactor_stops_it(tmp_path: Path) -> None:
    past = Past(tmp_path, indexed=False)
    past.live(1)
    past.write()
    compactor = opened(past, "compactor")
    planned = schedule(compactor, COMPACTION)
    assert planned is not None
    prepare(compactor, planned, COMPACTION)
    with pytest.raises(LostOwnershipError, match="compaction of another writer"):
        restore(opened(past, "operator"), past.moments[0][0])


@indexed
def test_a_reader_that_has_the_table_open_follows(tmp_path: Path, indexed: bool) -> None:
    past = Past(tmp_path, indexed)
    past.live(2)
    reader = TableReader.open(str(tmp_path))
    past.restore(past.moments[1][0])

    def rows() -> object:
        plan = reader.plan(Snapshot(), columns=SCHEMA.names)
        return sorted_rows(r for batch in reader.batches(plan) for r in batch.to_pylist())

    reader.refresh()
    assert rows() == past.model.rows()
    past.write()
    reader.refresh()
    assert rows() == past.model.rows()


@indexed
def test_a_writer_that_had_the_table_open_takes_it_in(tmp_path: Path, indexed: bool) -> None:
    past = Past(tmp_path, indexed)
    past.live(2)
    idle = past.table
    past.reopen()
    past.restore(past.moments[1][0])
    assert idle.refresh()
    assert [i.requested_time for i in idle.timeline.completed()] == [i for i, _ in past.moments]
    assert idle.extra_metadata("turn") == "102"
    past.table = idle
    past.live(2)
    past.check()
