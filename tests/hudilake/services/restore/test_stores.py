"""A restore on each kind of store, and one that dies there."""

from __future__ import annotations

import itertools

import pytest

from hudilake.metadata.config import MetadataConfig
from hudilake.read.slice import read_table
from hudilake.services import restore as module
from hudilake.services.compaction import run
from hudilake.services.fsck import fsck
from hudilake.services.restore import finish_pending_restores, restore
from hudilake.storage.base import Storage
from hudilake.table.table import HudiTable
from tests.hudilake.lake import SCHEMA, Model, config, deletes, sorted_rows, upserts
from tests.hudilake.services.compaction import test_stores as stores
from tests.hudilake.services.compaction.steps import add, serially
from tests.hypothesis_profile import usually

storage = stores.storage


def dies(*_: object) -> None:
    raise KeyboardInterrupt


#: On HDFS a file takes half a second.
ON_HDFS = [
    pytest.param("hdfs", dead, marks=[pytest.mark.hdfs, pytest.mark.full]) for dead in usually([False], [False, True])
]
ELSEWHERE = itertools.product(["memory", "s3"], [False, True])


@pytest.mark.first(2)
@pytest.mark.parametrize(("storage", "dead"), [*ELSEWHERE, *ON_HDFS], indirect=["storage"])
def test_there_and_back(storage: Storage, dead: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    table, model = HudiTable.create(storage, config(), SCHEMA, MetadataConfig()), Model()
    wanted = add(table, model, upserts(range(200), 100) + upserts([1], 5, day="d2"))
    then = model.rows()
    add(table, model, deletes([3], 200))
    run(table, stores.CONFIG, serially)
    add(table, model, upserts([3], 250, "late"))
    if dead:
        with monkeypatch.context() as patch:
            patch.setattr(module, "publish", dies)
            with pytest.raises(KeyboardInterrupt):
                restore(table, wanted)
        table = HudiTable.open(storage)
        assert len(finish_pending_restores(table)) == 1
    else:
        assert restore(table, wanted) is not None
    rows = sorted_rows(r for part in read_table(storage, SCHEMA.names) for r in part.to_pylist())
    assert rows == then
    assert fsck(storage).findings == ()
    add(table, model, upserts([3], 300, "on"))
    assert len(run(table, stores.CONFIG, serially)) == 1
    assert fsck(storage).findings == ()
