"""A log that an earlier version wrote is read, and goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudilake.commit.intent import GroupIntent, Intent
from lakemetastore.log.errors import ConflictError
from lakemetastore.log.stores.opening import open_store
from lakemetastore.log.versioned import VersionedLog
from tests.lakemetastore.log.counters import FOLD, Added, Change, Counters, Forgotten, counting
from tests.paths import GOLDEN

LOG = "tables/a"
FILLING = bytes(range(256)) * 40


def _log(root: Path) -> VersionedLog[Counters, Change]:
    return VersionedLog(open_store(str(root)), LOG, FOLD)


@pytest.mark.parametrize("snapshot", [True, False])
def test_a_log_that_was_written_earlier_goes_on(tmp_path: Path, snapshot: bool) -> None:
    shutil.copytree(GOLDEN / "metastore_log", tmp_path / "store")
    if not snapshot:
        (tmp_path / "store" / LOG / f"{2:020d}.snapshot").unlink()
    log = _log(tmp_path / "store")
    assert log.state().version == 4
    assert log.state().state == Counters({"b": 1, "c": 1}, 4)
    changes = [Added("a", 1), Added("b", 1, FILLING), Added("c", 1), Forgotten("a")]
    assert [each.change for each in log.changes(0)] == changes
    assert log.commit(counting("b")).state.numbers == {"b": 2, "c": 1}


def test_what_an_earlier_entry_concerned_is_known(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "metastore_log", tmp_path / "store")
    (tmp_path / "store" / LOG / f"{4:020d}.entry").unlink()
    log = _log(tmp_path / "store")
    other = GroupIntent("p", "g", frozenset({"z"}), inserts=False, deletes=False)
    with pytest.raises(ConflictError, match=r"version 3.*file group g in p, which the deltacommit 20260101000000000"):
        log.append(2, Added("d", 1), Intent.of_groups([other]), "row")
    assert log.append(2, Added("d", 1), Intent.of_groups([other])).version == 4
