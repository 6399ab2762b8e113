"""A table that keeps its metadata table: every commit notes itself there first, and what is noted is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.errors import ConfigError, CorruptDataError
from hudilake.format.definition.config import TableConfig
from hudilake.format.files.view import file_slices
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.records.layout import METADATA_PATH
from hudilake.services.fsck import fsck
from hudilake.storage.base import StorageError
from hudilake.table.table import HudiTable
from tests.hudilake.failing_storage import AnsweringStorage
from tests.hudilake.lake import Model, check, commit, deletes, new_table, storage_at, upserts, write
from tests.hudilake.metadata.below import Below, Counting

KEPT = MetadataConfig(compact_after=3, compact_at_most=3)
ALL = ("bloom_filters", "column_stats", "files", "partition_stats")


def findings(path: Path) -> list[str]:
    """What a check of everything finds, the metadata table against the data among it."""
    return [finding.what for finding in fsck(storage_at(path), grace_ms=0).findings]


def commits(table: HudiTable, model: Model, count: int, start: int = 0) -> None:
    for order in range(start, start + count):
        changes = upserts(range(order, order + 5), order, day=f"d{order % 3}") + deletes([order - 1], order)
        commit(table, changes)
        model.apply(changes)
        assert table.maintain() is None


def test_commits_over_its_own_compactions(tmp_path: Path) -> None:
    table, model = new_table(tmp_path, KEPT), Model()
    assert table.config.metadata_partitions == ALL
    commits(table, model, 8)
    check(tmp_path, model)
    assert findings(tmp_path) == []
    assert table.file_slices() == file_slices(table.storage, table.timeline)
    assert HudiTable.open(table.storage).file_slices() == table.file_slices()
    assert any("hfile" in p.name for p in (tmp_path / METADATA_PATH / "column_stats").iterdir())


def test_a_second_process_goes_on(tmp_path: Path) -> None:
    """Also where the first is still open, and sees what was noted meanwhile after a refresh."""
    first, model = new_table(tmp_path, KEPT), Model()
    commits(first, model, 2)
    second = HudiTable.open(storage_at(tmp_path), metadata=KEPT)
    commits(second, model, 2, start=2)
    assert first.refresh()
    commits(first, model, 2, start=4)
    check(tmp_path, model)
    assert findings(tmp_path) == []


def test_made_later_and_dropped_again(tmp_path: Path) -> None:
    table, model = new_table(tmp_path), Model()
    commits(table, model, 3)
    assert not table.keep_metadata(None)
    assert table.keep_metadata(KEPT)
    assert not table.keep_metadata(KEPT)
    assert findings(tmp_path) == []
    commits(table, model, 2, start=3)
    assert table.keep_metadata(KEPT.model_copy(update={"bloom_filters": False, "column_stats": False}))
    assert table.config.metadata_partitions == ("files",)
    commits(table, model, 2, start=5)
    check(tmp_path, model)
    assert findings(tmp_path) == []
    assert table.keep_metadata(None)
    assert not any((tmp_path / METADATA_PATH).rglob("*.hfile"))
    commits(table, model, 2, start=7)
    check(tmp_path, model)
    assert TableConfig.from_properties((tmp_path / ".hoodie/hoodie.properties").read_bytes()).metadata_partitions == ()


def test_it_is_not_made_under_a_pending_commit(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.begin()
    with pytest.raises(ConfigError, match="pending"):
        table.keep_metadata(KEPT)


def test_an_aborted_commit_leaves_nothing_in_it(tmp_path: Path) -> None:
    table, model = new_table(tmp_path, KEPT), Model()
    commits(table, model, 2)
    instant = table.begin()
    results = write(table, instant, upserts([70], 9, day="d9"))
    with table.exclusively():
        table._upkeep.note(instant, results, table.schema)
    table.abort(instant)
    assert findings(tmp_path) == []
    commits(table, model, 2, start=2)
    check(tmp_path, model)
    assert findings(tmp_path) == []


def test_the_order_of_calls(tmp_path: Path) -> None:
    """The metadata table's files stand between the data files and the completed instant, one log file a file group."""
    kept = KEPT.model_copy(update={"compact_after": 9, "compact_at_most": 9})
    new_table(tmp_path, kept)
    storage = Counting(storage_at(tmp_path))
    table = HudiTable.open(storage, metadata=kept)
    commit(table, upserts([1], 1))
    storage.calls.clear()
    instant = commit(table, upserts([1], 2))
    assert table.maintain() is None
    made = [(m, p.replace(instant, "T")) for m, p in storage.calls if m in ("create", "write")]
    names = [(m, p.removeprefix(".hoodie/")) for m, p in made if METADATA_PATH in p or ".deltacommit" in p]
    at = names.index(("create", "metadata/.hoodie/timeline/T.deltacommit.requested"))
    assert names[:at] == [("create", "timeline/T.deltacommit.requested"), ("create", "timeline/T.deltacommit.inflight")]
    together, (noted, completed) = names[at + 1 : -2], names[-2:]
    assert sorted(together)[0] == ("create", "metadata/.hoodie/timeline/T.deltacommit.inflight")
    logs = [path.rpartition("/")[2].partition("_T")[0] for method, path in together if method == "write"]
    assert sorted(set(logs)) == sorted(logs)
    assert {name.rstrip("0123456789-") for name in logs} == {".files", ".col-stats", ".partition-stats"}
    assert noted[1].startswith("metadata/.hoodie/timeline/T_")
    assert completed[1].startswith("timeline/T_")


def test_upkeep_that_fails_does_not_fail_the_commit(tmp_path: Path) -> None:
    """And is done after the next."""

    class Refusing(AnsweringStorage):
        def sub(self, path: str) -> Below:
            return Below(self, path)

    broken = [True]

    def fault(method: str, path: str, action: object) -> None:
        if broken[0] and "compaction.requested" in path:
            raise StorageError("no space", do_next="make some", operation=method, path=path)

    new_table(tmp_path)
    table, model = HudiTable.open(Refusing(storage_at(tmp_path), fault=fault), metadata=KEPT), Model()
    table.keep_metadata(KEPT)
    troubles = []
    for order in range(6):
        changes = upserts([order], order)
        commit(table, changes)
        model.apply(changes)
        broken[0] = order < 4
        troubles.append(table.maintain())
    assert [t is None for t in troubles] == [False, False, False, False, True, True]
    assert "no space" in str(troubles[0])
    check(tmp_path, model)
    assert findings(tmp_path) == []


def test_a_metadata_table_that_cannot_be_opened_refuses_the_instant(tmp_path: Path) -> None:
    """A start looks at the names of its timeline alone; nothing of an instant is left by one that is damaged."""
    new_table(tmp_path, KEPT)
    table = HudiTable.open(storage_at(tmp_path))
    assert table.rollback_pending() == []
    table.storage.write(".hoodie/.index_defs/index.json", b"{")
    with pytest.raises(CorruptDataError):
        table.begin()
    assert HudiTable.open(storage_at(tmp_path)).timeline.pending() == []
