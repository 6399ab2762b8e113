"""Reads of a store's table as of a timestamp, by function and by command; those that compactions made impossible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.hbase.derive.as_of import visible_cells, wide_rows_as_of
from binlake.hbase.rules.rules import Moment
from binlake.settings import CompactionSettings
from binlake.tables.services.policy import compaction_config
from hudilake.clock import now_ms
from hudilake.errors import ConfigError, UnsupportedError
from hudilake.services.compaction import run
from tests.binlake.hbase.derive.cells_lake import CELLS, CellsLake, delete, document, put
from tests.hudilake.services.compaction.steps import serially

_DECLARED: dict[str, dict[str, bool]] = {"d": {}, "m": {}}
_KEEPING: dict[str, dict[str, bool]] = {"d": {"keep_deleted_cells": True}, "m": {}}


def _lake(path: Path, **store: Any) -> CellsLake:  # noqa: ANN401 - any YAML value
    here = CellsLake.at(str(path), **store)
    here.write(put("r1", "d:status", 1_000, "new"), put("r2", "d:status", 1_000, "new"))
    here.write(put("r1", "d:status", 2_000, "paid"), put("r1", "m:color", 2_500, "red"))
    here.write(delete("r2", "d:status", 3_000), put("r1", "d:status", 4_000, "sent"))
    return here


def _cells(here: CellsLake, as_of_ms: int | None, rows: list[str] | None = None) -> list[tuple[str, int]]:
    keys = None if rows is None else pa.array(rows, pa.string())
    parts = visible_cells(here.hudi(CELLS), here.pair.kept, Moment(now_ms(), as_of_ms), keys)
    found = pa.concat_tables(parts)
    return sorted(zip(found.column("row").to_pylist(), found.column("timestamp").to_pylist(), strict=True))


def _compact(here: CellsLake) -> None:
    config = compaction_config(here.pair.cells_rules, CompactionSettings())
    assert len(run(here.hudi(CELLS), config, serially, now=True)) == 1


def test_cells_of_a_timestamp(tmp_path: Path) -> None:
    here = _lake(tmp_path, families=_KEEPING)
    assert _cells(here, None) == [("r1", 2_500), ("r1", 4_000)]
    assert _cells(here, 3_999) == [("r1", 2_000), ("r1", 2_500)]
    assert _cells(here, 2_000) == [("r1", 2_000), ("r2", 1_000)]
    assert _cells(here, 2_000, ["r2", "r9"]) == [("r2", 1_000)]
    assert _cells(here, 999) == []


def test_wide_rows_of_a_timestamp(tmp_path: Path) -> None:
    here = _lake(tmp_path, families=_KEEPING)
    pair = here.pair
    moment = Moment(now_ms(), 2_499)
    found = pa.concat_tables(wide_rows_as_of(here.hudi(CELLS), pair.kept, pair.declared, moment))
    shown = {row["order_id"]: (row["status"], row["attributes"]) for row in found.to_pylist()}
    assert {key: status for key, (status, _) in shown.items()} == {"r1": "paid", "r2": "new"}
    assert all(not attributes for _, attributes in shown.values())


def test_timestamps_before_the_horizon_are_refused(tmp_path: Path) -> None:
    kept = _lake(tmp_path / "kept", lateness_hours=1, families=_DECLARED)
    lost = _lake(tmp_path / "lost", lateness_hours=1e-9, families=_DECLARED)
    for here in (kept, lost):
        _compact(here)
        assert _cells(here, None) == [("r1", 2_500), ("r1", 4_000)]
    assert _cells(kept, now_ms()) == _cells(kept, now_ms() - 1_000) == _cells(kept, None)
    with pytest.raises(UnsupportedError, match="compactions have dropped cells that were visible"):
        _cells(kept, 3_999)
    assert _cells(lost, now_ms()) == _cells(lost, None)
    with pytest.raises(UnsupportedError, match="compactions have dropped cells that were visible"):
        _cells(lost, now_ms() - 60_000)


def test_command(tmp_path: Path) -> None:
    here = _lake(tmp_path / "lake", families=_KEEPING)
    here.deriver.derive(here.pair)
    conf = tmp_path / "conf.yaml"
    conf.write_text(json.dumps(document(str(tmp_path / "lake"), families=_KEEPING)))

    def told(*options: str) -> list[dict[str, object]]:
        done = CliRunner().invoke(app, ["cells", str(conf), *options], catch_exceptions=False)
        return [json.loads(line) for line in done.stdout.splitlines()]

    assert [(row["row"], row["value"]) for row in told("shop.orders_cells", "--as-of", "1000")] == [
        ("r1", "new"),
        ("r2", "new"),
    ]
    (found,) = told("shop.orders_cells", "--wide", "--row", "r\\x31")
    assert (found["order_id"], found["status"], found["attributes"]) == ("r1", "sent", {"color": "red"})
    assert told("shop.orders_cells", "--as-of", "1970-01-01 00:00:02", "--row", "r2")[0]["timestamp"] == 1_000
    with pytest.raises(ConfigError, match="it is no table of cells"):
        told("shop.orders")
