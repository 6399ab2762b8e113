"""A wide table is compared with its cells, and the command derives what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.hbase.derive.check import WideCheck, check_wide
from tests.binlake.hbase.derive.cells_lake import CELLS, WIDE, CellsLake, delete, document, number, put


@pytest.fixture
def here(tmp_path: Path) -> CellsLake:
    """Rows a, b and c, derived."""
    lake = CellsLake.at(str(tmp_path / "lake"))
    lake.write(put("a", "d:user_id", 10, number(7)), put("b", "m:x", 10, "1"), put("c", "d:status", 10, "new"))
    lake.deriver.derive(lake.pair)
    return lake


def compared(here: CellsLake) -> WideCheck:
    return check_wide(here.pair, here.hudi(CELLS), here.hudi(WIDE), here.pool)


def test_rows_that_wait_are_not_compared(here: CellsLake) -> None:
    assert compared(here) == WideCheck(rows=3)
    here.write(put("c", "d:status", 20, "old"), put("d", "d:status", 20, "new"), delete("b", "m:", 20))
    assert compared(here) == WideCheck(rows=1, waiting=3)
    here.deriver.derive(here.pair)
    assert compared(here) == WideCheck(rows=3)


def test_wrong_rows_are_found(here: CellsLake) -> None:
    here.spoil(upserts=[{"order_id": "a", "user_id": 8}, {"order_id": "z"}], gone=["b"])
    found = compared(here)
    assert (found.missing, found.surplus, found.differing, sorted(found.keys)) == (1, 1, 1, ["a", "b", "z"])
    here.deriver.derive(here.pair, anew="it was asked for")
    assert compared(here) == WideCheck(rows=3)


def test_the_command(here: CellsLake, tmp_path: Path) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text(json.dumps(document(here.settings.lake.uri)))
    here.write(put("d", "d:status", 20, "new"))
    run = CliRunner().invoke(app, ["derive", str(conf), str(WIDE)])
    assert (run.exit_code, "1 row derived (rows that were touched): 1 written" in run.output) == (0, True)
    assert here.rows() == here.wanted()
    run = CliRunner().invoke(app, ["derive", str(conf), "--check", "--json"])
    assert json.loads(run.stdout)["rows"] == 4
    here.spoil(upserts=[{"order_id": "z"}])
    run = CliRunner().invoke(app, ["derive", str(conf), "--check"])
    assert (run.exit_code, "0 missing, 1 too many, 0 differ" in run.output) == (66, True)
    run = CliRunner().invoke(app, ["derive", str(conf), "--all", "--json"])
    assert json.loads(run.stdout)["why"] == "it was asked for"
    assert here.rows() == here.wanted()


def test_status_tells_how_far_it_is_derived(here: CellsLake, tmp_path: Path) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text(json.dumps(document(here.settings.lake.uri)))

    def told() -> str:
        """What status says of the wide table."""
        run = CliRunner().invoke(app, ["status", str(conf), "--no-kafka"])
        assert run.exit_code == 0
        (line,) = [line for line in run.output.splitlines() if "derived from" in line]
        return line.strip()

    until = here.hudi(CELLS).timeline.newest_first()[0].completion_time
    assert told() == f"shop.orders: derived from shop.orders_cells up to {until}; up to date"
    here.write(put("d", "d:status", 20, "new"))
    assert "1 commit, " in told()
    run = CliRunner().invoke(app, ["status", str(conf), str(WIDE), "--no-kafka", "--json"])
    (table,) = [json.loads(line) for line in run.stdout.splitlines() if "table" in json.loads(line)]
    assert (table["derived"]["until"], table["derived"]["commits"], table["derived"]["state"]) == (until, 1, "behind")
    conf.write_text(json.dumps(document(here.settings.lake.uri, {"order_id": ":key", "user_id": "d:user_id#b long"})))
    assert told().endswith("by another declaration; every row will be derived")
