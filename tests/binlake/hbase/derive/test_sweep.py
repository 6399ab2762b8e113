"""Cells that expire vanish from wide rows, on a clock of the test's own."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.hbase.derive.sweep import Sweeper, expired_rows
from binlake.position.derived_position import DerivedPosition
from binlake.settings import CompactionSettings
from binlake.tables.services.policy import compaction_config
from hudilake.clock import now_ms
from hudilake.services.compaction import run
from tests.binlake.hbase.cells_world import CellsWorld, wal_entry
from tests.binlake.hbase.derive.cells_lake import CELLS, CellsLake, document, put
from tests.hudilake.services.compaction.steps import serially
from tests.judges import hudi_rs

_MS_PER_S = 1000
_TTL_MS = 600 * _MS_PER_S
_FAMILIES: dict[str, dict[str, int]] = {"d": {"ttl_seconds": 600}, "m": {}}


@dataclass
class _Clock:
    """Wall time, ``ahead_ms`` ahead of the machine's."""

    ahead_ms: int = 0

    def now_ms(self) -> int:
        return now_ms() + self.ahead_ms

    def pass_s(self, seconds: float) -> None:
        self.ahead_ms += int(seconds * _MS_PER_S)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """The clock of derivations and sweeps."""
    made = _Clock()
    for module in ("derivation", "sweep"):
        monkeypatch.setattr(f"binlake.hbase.derive.{module}.now_ms", made.now_ms)
    return made


def _lake(path: Path, time: _Clock, **store: Any) -> CellsLake:  # noqa: ANN401 - any YAML value
    """Rows that expire after 60 and 120 seconds, one with a further cell that stays, and one with such a cell only."""
    here, now = CellsLake.at(str(path), **{"families": _FAMILIES, **store}), time.now_ms()
    soon, later = now - _TTL_MS + 60 * _MS_PER_S, now - _TTL_MS + 120 * _MS_PER_S
    here.write(put("soon", "d:status", soon, "a"), put("later", "d:status", later, "b"))
    here.write(put("both", "d:status", soon, "c"), put("both", "m:color", soon, "red"), put("none", "m:color", 1, "x"))
    here.deriver.derive(here.pair)
    return here


def _note(here: CellsLake) -> DerivedPosition:
    table = here.lake.get(here.pair.wide_rules)
    assert table is not None
    assert table.recorded.derived is not None
    return table.recorded.derived


def _keys(here: CellsLake) -> list[str]:
    return [row["order_id"] for row in here.rows()]


def test_expired_cells_leave_the_wide_table(tmp_path: Path, time: _Clock) -> None:
    here = _lake(tmp_path, time)
    sweeper = Sweeper(here.deriver)
    assert _keys(here) == ["both", "later", "none", "soon"]
    assert sweeper.sweep(here.pair).rows == 0
    time.pass_s(61)
    done = sweeper.sweep(here.pair)
    assert (done.rows, done.upserts, done.gone) == (2, 1, 1)
    assert _keys(here) == ["both", "later", "none"]
    assert here.rows() == here.wanted(time.now_ms())
    assert sweeper.sweep(here.pair).rows == 0
    time.pass_s(60)
    assert sweeper.sweep(here.pair).rows == 1
    assert _keys(here) == ["both", "none"]
    assert here.rows() == here.wanted(time.now_ms())


def test_sweep_goes_on_where_the_last_one_ended(tmp_path: Path, time: _Clock) -> None:
    """In another process, by the note of the wide table's commits; the position in the table of cells stays."""
    here = _lake(tmp_path, time)
    first = _note(here)
    time.pass_s(61)
    Sweeper(here.deriver).sweep(here.pair)
    here.reopen()
    note = _note(here)
    assert note.until == first.until
    assert note.swept_ms > first.swept_ms
    assert Sweeper(here.deriver).sweep(here.pair).rows == 0
    time.pass_s(60)
    here.reopen()
    assert Sweeper(here.deriver).sweep(here.pair).rows == 1


def test_sweep_without_rows_is_recorded_now_and_then(tmp_path: Path, time: _Clock) -> None:
    here = _lake(tmp_path, time, lateness_hours=1)
    sweeper, before = Sweeper(here.deriver), len(here.hudi(here.pair.wide).timeline.completed())
    time.pass_s(130)
    sweeper.sweep(here.pair)
    for passed, commits in ((1_000, 1), (900, 2), (10, 2)):
        time.pass_s(passed)
        assert sweeper.sweep(here.pair).rows == 0
        assert len(here.hudi(here.pair.wide).timeline.completed()) == before + commits


def test_every_row_is_derived_where_a_compaction_was_earlier(tmp_path: Path, time: _Clock) -> None:
    """It has dropped cells that expired since the last sweep; no sweep sees them any more."""
    time.pass_s(-3_600)
    here = _lake(tmp_path, time, lateness_hours=0.01)
    assert _keys(here) == ["both", "later", "none", "soon"]
    config = compaction_config(here.pair.cells_rules, CompactionSettings())
    assert len(run(here.hudi(CELLS), config, serially, now=True)) == 1
    time.pass_s(3_600)
    done = Sweeper(here.deriver).sweep(here.pair)
    assert done.why == "compactions have dropped cells that expired since the last sweep"
    assert _keys(here) == ["both", "none"]
    assert Sweeper(here.deriver).sweep(here.pair).rows == 0


def test_is_due_by_its_seconds(tmp_path: Path, time: _Clock) -> None:
    here = _lake(tmp_path, time, wide={"sweep_seconds": 5})
    sweeper = Sweeper(here.deriver)
    assert sweeper.is_due(here.pair)
    sweeper.sweep(here.pair)
    assert not sweeper.is_due(here.pair)
    time.pass_s(5)
    assert sweeper.is_due(here.pair)


def test_rows_of_a_window(tmp_path: Path, time: _Clock) -> None:
    here = _lake(tmp_path, time)
    now, cells, rule = time.now_ms(), here.hudi(CELLS), here.pair.kept
    assert set(expired_rows(cells, rule, now, now + 90_000).to_pylist()) == {"soon", "both"}
    assert set(expired_rows(cells, rule, now + 90_000, now + 150_000).to_pylist()) == {"later"}
    assert expired_rows(cells, rule, now + 150_000, now + 9_000_000).to_pylist() == []
    assert set(expired_rows(cells, rule, -(2**80), now + 90_000).to_pylist()) == {"soon", "both"}


def test_stream_sweeps_between_its_batches(tmp_path: Path, time: _Clock) -> None:
    world = CellsWorld(tmp_path, ())
    columns = {"id": ":key", "status": "d:status#b utf8"}
    store = {"source": "shop.orders", "families": _FAMILIES, "wide": {"columns": columns}}
    world.start(tables={"cells": [store]})
    coded = {name: base64.b64encode(b).decode() for name, b in (("row", b"r"), ("family", b"d"), ("value", b"new"))}
    cell = {**coded, "qualifier": base64.b64encode(b"status").decode(), "type": "Put", "timeStamp": time.now_ms()}
    world.log.records[("hbase.shop.orders.wal", 0)] = [(b"k", wal_entry([cell], written=time.now_ms()))]
    world.feed()
    assert world.rows("id", "status") == {("r", "new")}
    assert world.runner.derive_expired() is None
    time.pass_s(601)
    told = world.runner.derive_expired()
    assert told is not None
    assert [(table.table, table.derived.deletes) for table in told.tables if table.derived] == [("shop.orders", 1)]
    assert hudi_rs.snapshot(tmp_path / "lake" / "shop" / "orders").num_rows == 0
    assert world.runner.derive_expired() is None


def test_command_sweeps(tmp_path: Path, time: _Clock) -> None:
    _lake(tmp_path / "lake", time)
    conf = tmp_path / "conf.yaml"
    conf.write_text(json.dumps(document(str(tmp_path / "lake"), families=_FAMILIES)))
    time.pass_s(61)
    done = CliRunner().invoke(app, ["derive", str(conf), "--json"], catch_exceptions=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["swept"], line["rows"], line["gone"]) for line in told] == [(False, 0, 0), (True, 2, 1)]
