"""``binlake clean``, ``binlake archive`` and ``binlake savepoint``."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from binlake.rows.merging.tombstones import write_tombstones
from hudilake.format.definition.merging import ROW_GROUP
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.stream.topic_log import event
from tests.judges import hudi_rs


@pytest.fixture
def lake(tmp_path: Path) -> FedLake:
    """Three compactions of each table, then settings that promise less."""
    made = FedLake(tmp_path, {"retention": {"commits": 50}})
    for _ in range(3):
        made.feed(3)
        made.run("compact")
    made.configure({})
    return made


def test_clean(lake: FedLake) -> None:
    before = lake.files()
    shown = lake.run("clean", "shop.a", "--dry-run")
    assert shown.exit_code == 0
    listed = {line[2:] for line in shown.stdout.splitlines() if line.startswith("- ")}
    assert listed
    assert listed < before
    assert f"shop.a: {len(listed)} files would be deleted; all of " in shown.stdout
    assert lake.files() == before
    told = lake.json("clean")
    assert [t["table"] for t in told] == ["shop.a", "shop.b"]
    assert set(told[0]["files"]) == listed
    assert before - lake.files() == listed
    assert "shop.a: 0 files deleted" in lake.run("clean").stdout
    for name in "ab":
        lake.check(name=name)


def test_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = FedLake(tmp_path, {"metadata": {"enabled": False}})
    lake.feed(9)
    lake.run("compact", "shop.a", "--now")  # without a metadata table, commits stay until their log files are compacted
    lake.feed(1)
    monkeypatch.setattr("binlake.tables.services.policy._SPARE_COMMITS", 2)
    monkeypatch.setattr("binlake.tables.services.policy._ARCHIVED_AT_ONCE", 1)
    active = len(lake.table().timeline.completed())
    shown = lake.run("archive", "shop.a", "--dry-run")
    names = [line[2:] for line in shown.stdout.splitlines() if line.startswith("- ")]
    assert names
    assert len(lake.table().timeline.completed()) == active
    (told,) = lake.json("archive", "shop.a")
    assert told["instants"] == len(names)
    assert not any((lake.path / "shop/a/.hoodie/timeline" / name).exists() for name in names)
    lake.check()
    lake.start()
    lake.feed(1)
    lake.check()


def test_a_delete_that_was_rolled_back_does_not_count_after_an_archival(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instants before the timeline count as completed, so the tombstones of one that never did must go first."""
    lake = FedLake(tmp_path, {"merge": {"engine": "partial_update"}, "buckets": 1, "metadata": {"enabled": False}})
    lake.feed(4)
    table = lake.table()
    dead = str(int(table.timeline.completed()[0].requested_time) + 1)
    (piece,) = table.file_slices()
    deletes = pa.table({RECORD_KEY_FIELD: ["77"], ROW_GROUP.order_field: [-(1 << 60)]})
    write_tombstones(table.storage, piece.file_id, dead, deletes)
    lake.feed(5)
    lake.run("compact", "shop.a", "--now")
    lake.feed(1)
    monkeypatch.setattr("binlake.tables.services.policy._SPARE_COMMITS", 2)
    monkeypatch.setattr("binlake.tables.services.policy._ARCHIVED_AT_ONCE", 1)
    (told,) = lake.json("archive", "shop.a")
    assert told["instants"]
    assert dead < lake.table().timeline.completed()[0].requested_time
    lake.start()
    row = {"id": 77, "owner": "new", "balance": "AfQ=", "region": "eu"}
    lake.log.add("s.shop.a", event("a", "u", 5_000, row), {"id": 77})
    lake.go_on()
    assert 77 in hudi_rs.snapshot(f"{lake.path}/shop/a").column("id").to_pylist()


def test_without_a_retention(tmp_path: Path) -> None:
    lake = FedLake(tmp_path, {"retention": None})
    lake.feed(1)
    for command in ("clean", "archive"):
        done = lake.run(command)
        assert (done.exit_code, done.stdout.count("no retention")) == (0, 2)


def test_one_bad_table_does_not_stop_the_others(lake: FedLake) -> None:
    (lake.path / "shop/a/.hoodie/hoodie.properties").write_bytes(b"")
    done = lake.run("clean")
    assert done.exit_code == 66
    assert "shop.b: " in done.stdout
    assert "hoodie.properties names no table" in done.stderr


def test_savepoints(lake: FedLake) -> None:
    wanted = lake.commits()[1]
    made = lake.run("savepoint create", "shop.a", wanted, "--comment", "audit")
    assert f"shop.a: savepoint {wanted} holds " in made.stdout
    lake.run("savepoint create", "shop.a")
    found = lake.json("savepoint list", "shop.a")
    assert [(s["instant"], s["comment"]) for s in found] == [
        (wanted, "audit"),
        (lake.table().timeline.completed()[-1].requested_time, ""),
    ]
    shown = lake.run("savepoint list", "shop.a").stdout
    assert "2 savepoints of shop.a" in shown
    assert "audit" in shown
    held = lake.json("clean", "shop.a")[0]["files"]
    assert lake.run("savepoint delete", "shop.a", wanted).stdout == f"shop.a: savepoint {wanted} is gone\n"
    freed = lake.json("clean", "shop.a")[0]["files"]
    assert freed
    assert not set(freed) & set(held)
    assert "no such savepoint" in str(lake.run("savepoint delete", "shop.a", wanted).exception)
    assert lake.json("savepoint list", "shop.b") == []
    lake.check()
