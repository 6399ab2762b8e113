"""Copy-on-write tables fed by a stream, by replays and by backfills, and what commands make of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from binlake.rows.merging import tombstone_upkeep
from binlake.rows.merging.deleted_keys import DeletedKeys
from binlake.rows.merging.tombstone_upkeep import tidy
from binlake.tables.audit import audit
from hudilake.clock import now_ms
from hudilake.errors import UnsupportedError
from hudilake.read import Incremental, Snapshot, TableReader
from hudilake.services.compaction import CompactionConfig, due, schedule
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.load.backfill.lake_with_rows import BATCHES, backfilled, rows_of, scores, with_scores, written
from tests.binlake.load.replay.dumped import replay, settings
from tests.binlake.load.replay.test_replay import check, dumped, sound
from tests.binlake.stream.topic_log import event

COPIED = {"type": "copy_on_write"}


def fed(path: Path, batches: int = BATCHES) -> FedLake:
    """A lake after some batches."""
    lake = FedLake(path, COPIED)
    lake.feed(batches, ("a",))
    return lake


def writes(lake: FedLake) -> list[str]:
    """The instants of the commits."""
    return [write.requested_time for write in lake.table().timeline.completed()]


def test_commands(tmp_path: Path) -> None:
    lake = fed(tmp_path, 4)
    lake.check()
    (table,) = [line for line in lake.json("status", "--no-kafka") if line.get("table") == "shop.a"]
    assert (table["commit"], table["log_bytes"], table["commit_rows"]) == (writes(lake)[-1], 0, 4)
    told = lake.run("compact", "--now", "shop.a")
    assert told.exit_code == 0, told.output
    assert "a copy-on-write table has no log files to compact" in told.output
    assert not [name for name in lake.files() if name.startswith(".") and ".log." in name]
    lake.check()
    assert audit(lake.table().storage).errors == []
    lake.feed(1, ("a",))
    lake.check()


def test_nothing_is_due_for_compaction(tmp_path: Path) -> None:
    table = fed(tmp_path, 2).table()
    assert due(table, CompactionConfig(after_commits=1)) is None
    with pytest.raises(UnsupportedError, match="no log files to compact"):
        schedule(table, CompactionConfig(after_commits=1))


def test_reads_of_other_moments(tmp_path: Path) -> None:
    """As of each commit, and what changed since: rows keep the instant of the commit that wrote them."""
    lake = FedLake(tmp_path, {**COPIED, "retention": None})
    lake.feed(4, ("a",))
    reader, writes = TableReader.open(lake.table().storage), lake.table().timeline.completed()
    for number, write in enumerate(writes):
        then = reader.read(Snapshot(write.requested_time), columns=["id", "owner"]).read_all().to_pylist()
        expected = {key: f"o{number}" for key in range(number + 1) if key != number - 3}
        assert {row["id"]: row["owner"] for row in then} == expected
    lake.log.add("s.shop.a", event("a", "u", 10_000, {"id": 2, "owner": "z", "balance": "AfQ=", "region": "eu"}), None)
    lake.runner.run(4, lake.log.end(), 0, lake.engine)
    reader = TableReader.open(lake.table().storage)
    changed = reader.read(Incremental(writes[-1].completion_time or ""), columns=["id", "owner"]).read_all()
    assert changed.to_pylist() == [{"id": 2, "owner": "z"}]


def test_partial_rows_of_a_backfill_change_base_files(tmp_path: Path) -> None:
    lake, source = fed(tmp_path), written(tmp_path / "in.parquet", scores())
    report = backfilled(lake, source, insert=True)
    assert (report.counts.inserted, report.counts.missing, report.counts.changed) == (3, 1, 4)  # key 1 was deleted
    assert rows_of(lake, "score") == {**with_scores(), 5: (7.5,), 6: (9.0,), 7: (10.5,)}
    lake.feed(1, ("a",))
    assert rows_of(lake, "owner", "score")[3] == ("o5", 4.5)


def test_replayed_hour_by_hour(tmp_path: Path) -> None:
    """A commit a portion; replayed again, nothing changes."""
    lake, dumps = tmp_path / "lake", tmp_path / "dumps"
    dump = {"path": "{database}.{table}/dt={date}/hour={hour}/*", "commit_bytes": 1}
    config = settings(lake, dumps, dump=dump, tables={"defaults": COPIED})
    dumped(dumps)
    replay(config)
    check(lake)
    sound(lake)
    for name in ("accounts", "orders"):
        table = HudiTable.open(open_storage(str(lake / "shop" / name)))
        writes = table.timeline.completed()
        assert {write.action for write in writes} == {"commit"}
        assert len(writes) == 2
        assert all(piece.base_file and not piece.log_files for piece in table.file_slices())
    replay(config)
    check(lake)
    assert table.refresh() is False


def deleted_keys(table: HudiTable) -> set[str]:
    """The keys whose deletes keep late events out."""
    found = [DeletedKeys.of(table.storage, table.timeline, piece.file_id) for piece in table.file_slices()]
    return {key for one in found for key in one.keys.to_pylist()}


def test_tombstones_go_after_their_retention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then a late event does not bring the row back."""
    lake = fed(tmp_path)
    late = {"id": 1, "owner": "late", "balance": "AfQ=", "region": "eu"}
    lake.log.add("s.shop.a", event("a", "u", 401, late), {"id": 1})
    lake.runner.run(BATCHES, lake.log.end(), 0, lake.engine)
    assert 1 not in rows_of(lake, "owner")
    table = lake.table()
    known = deleted_keys(table)
    assert "1" in known
    tidy(table, 1.0)
    assert deleted_keys(table) == known
    monkeypatch.setattr(tombstone_upkeep, "now_ms", lambda: now_ms() + 2 * 3_600_000)
    tidy(table, 1.0)
    assert deleted_keys(table) == set()


def test_base_files_have_our_row_groups(tmp_path: Path) -> None:
    """The settings of compaction's base files are those of commits."""
    lake = FedLake(tmp_path, {**COPIED, "buckets": 1, "compaction": {"row_group_rows": 2}})
    lake.feed(5, ("a",))
    (newest,) = [piece.base_file for piece in lake.table().file_slices()]
    assert newest is not None
    file = pq.ParquetFile(tmp_path / "lake/shop/a" / newest.path)
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [2, 2]
