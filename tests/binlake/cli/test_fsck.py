"""``binlake fsck`` and ``binlake repair`` as a person runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from hudilake.table.table import HudiTable
from tests.hudilake import lake
from tests.hudilake.services.fsck.tables import age, logs, make_plain, offsets, rows
from tests.hudilake.services.fsck.test_files import FUTURE, renamed


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = make_plain(tmp_path / "t")
    age(path)
    return path


def run(*arguments: str, answer: str | None = None) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(arguments), input=answer)
    return done.exit_code, done.output


def test_a_clean_table(table: Path) -> None:
    code, text = run("fsck", str(table))
    assert code == 0
    assert f"t1: 0 error, 0 warning, 1 info; {len(lake.data_files(table))} files read" in text
    assert run("repair", str(table)) == (0, "nothing that can be repaired safely\n")


@pytest.mark.full
def test_damage_ends_with_the_exit_code_of_corrupt_data(table: Path) -> None:
    log = logs(table)[0]
    log.write_bytes(log.read_bytes()[:-3])
    done = subprocess.run(
        [sys.executable, "-m", "binlake.cli", "fsck", str(table)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 66
    assert "error content: the file's end is cut short" in done.stdout
    assert f"where: {log.relative_to(table)} at byte " in done.stdout
    assert "next: restore it from a copy" in done.stdout
    assert run("repair", str(table), "--yes")[0] == 66


def test_findings_as_json(table: Path) -> None:
    lost = logs(table)[0]
    lost.unlink()
    code, text = run("fsck", str(table), "--json")
    found = [json.loads(line) for line in text.splitlines()]
    assert code == 66
    assert [(f["severity"], f["check"]) for f in found] == [("error", "files"), ("info", "index")]
    assert (found[0]["path"], found[0]["repair"]) == (str(lost.relative_to(table)), None)


def test_a_repair_asks_first(table: Path) -> None:
    stray = renamed(logs(table)[0], FUTURE)
    before = rows(table)
    code, text = run("repair", str(table), "--dry-run")
    assert (code, stray.exists()) == (0, True)
    assert f"- move the file away: {stray.relative_to(table)}" in text
    assert run("repair", str(table), answer="n\n")[0] == 1
    assert stray.exists()
    code, text = run("repair", str(table), answer="y\n")
    assert (code, stray.exists()) == (0, False)
    assert f"moved {stray.relative_to(table)} away" in text
    assert "--take-back puts them back" in text
    assert rows(table) == before
    assert "0 error, 0 warning" in text


@pytest.mark.full
def test_a_repair_is_taken_back(table: Path) -> None:
    renamed(logs(table)[0], FUTURE)
    before = {path: (table / path).read_bytes() for path in lake.tree(table)}
    assert run("repair", str(table), "--yes")[0] == 0
    assert run("repair", str(table), "--take-back", answer="n\n")[0] == 1
    code, text = run("repair", str(table), "--take-back", "--yes")
    assert (code, "1 file is as it was" in text) == (0, True)
    assert {path: (table / path).read_bytes() for path in lake.tree(table)} == before
    done = subprocess.run(
        [sys.executable, "-m", "binlake.cli", "repair", str(table), "--take-back", "--yes"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "no repair of this table can be taken back" in done.stderr) == (2, True)


def test_the_grace_time_protects_young_files(table: Path) -> None:
    stray = renamed(logs(table)[0], FUTURE)
    age(table, hours=0.1)
    assert "nothing that can be repaired" in run("repair", str(table), "--yes")[1]
    assert stray.exists()
    run("repair", str(table), "--yes", "--grace-min", "1")
    assert not stray.exists()


def test_overlapping_offsets_of_binlakes_own_commits_are_found(table: Path) -> None:
    lake.commit(HudiTable.open(lake.storage_at(table)), lake.upserts([1], 9), offsets(5, 9))
    code, text = run("fsck", str(table), "--no-data")
    assert code == 66
    assert "offsets 5 to 8 are covered by the commits" in text
