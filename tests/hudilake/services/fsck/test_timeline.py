from __future__ import annotations

from pathlib import Path

from hudilake.services.fsck import Check, Repair, Severity
from hudilake.table.table import HudiTable
from tests.hudilake import lake
from tests.hudilake.services.fsck.tables import age, told

TIMELINE = ".hoodie/timeline"


def completed(path: Path) -> list[Path]:
    return sorted((path / TIMELINE).glob("*_*.deltacommit"))


def test_an_empty_newest_commit_can_be_taken_back(plain: Path) -> None:
    newest = completed(plain)[-1]
    newest.write_bytes(b"")
    assert told(plain)[0].repair is None, "it was changed just now"
    age(plain)
    (only,) = told(plain)
    assert (only.severity, only.check, only.repair) == (Severity.ERROR, Check.TIMELINE, Repair.DISCARD_COMMIT)
    assert only.path == f"{TIMELINE}/{newest.name}"
    assert only.instant == newest.name[:17]


def test_an_empty_older_commit_is_left_to_the_operator(plain: Path) -> None:
    completed(plain)[0].write_bytes(b"")
    age(plain)
    (only,) = told(plain)
    assert (only.severity, only.repair) == (Severity.ERROR, None)
    assert "would lose its rows" in only.next


def test_a_torn_commit_is_named(plain: Path) -> None:
    newest = completed(plain)[-1]
    newest.write_bytes(newest.read_bytes()[:200])
    age(plain)
    (only,) = told(plain)
    assert (only.severity, only.path, only.repair) == (Severity.ERROR, f"{TIMELINE}/{newest.name}", None)


def test_an_instant_completed_twice(plain: Path) -> None:
    newest = completed(plain)[-1]
    body = newest.read_bytes()
    (newest.parent / f"{newest.name[:17]}_{int(newest.name[18:35]) + 1}.deltacommit").write_bytes(body)
    (only,) = told(plain)
    assert only.severity is Severity.ERROR
    assert "completed 2 times" in only.what


def test_pending_commits_are_dead_only_after_a_silence(plain: Path) -> None:
    table = HudiTable.open(lake.storage_at(plain))
    instant = table.begin()
    lake.write(table, instant, lake.upserts(range(4), 9))
    (alive,) = told(plain)
    assert (alive.severity, alive.instant, alive.repair) == (Severity.WARNING, instant, None)
    age(plain)
    (dead,) = told(plain)
    assert dead.repair is Repair.ROLL_BACK
    beat = plain / ".hoodie/.heartbeat" / instant
    beat.parent.mkdir()
    beat.write_bytes(b"")
    assert told(plain)[0].repair is None, "a heartbeat means a living writer"


def test_a_file_that_is_no_instant(plain: Path) -> None:
    (plain / TIMELINE / "notes.txt").write_text("x")
    (only,) = told(plain)
    assert (only.severity, only.path) == (Severity.WARNING, f"{TIMELINE}/notes.txt")


def test_an_unreadable_history(plain: Path) -> None:
    lake.write_history(plain, {"20200101000000000": "20200101000000001"})
    (plain / f"{TIMELINE}/history/archived.parquet").write_bytes(b"junk")
    assert ["archived timeline" in f.what for f in told(plain)] == [True]


def test_broken_properties_are_told_and_the_backup_is_used(plain: Path) -> None:
    properties = plain / ".hoodie/hoodie.properties"
    properties.with_name("hoodie.properties.backup").write_bytes(properties.read_bytes())
    properties.write_bytes(b"")
    (only,) = told(plain)
    assert (only.check, only.path) == (Check.CONFIG, ".hoodie/hoodie.properties")
