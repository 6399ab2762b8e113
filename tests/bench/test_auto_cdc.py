"""The bench beside AUTO CDC, without Spark: our side takes turns and leaves the rows of the model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench.auto_cdc.__main__ import rows
from bench.auto_cdc.sides import Side
from bench.events import Shape, events
from bench.model import digest, expected, newest


@pytest.mark.full
def test_our_side_leaves_the_rows_of_the_model(tmp_path: Path) -> None:
    made, place = list(events(600, keys=50)), tmp_path / "ours"
    values = [value for _, value in made]
    side = Side("ours", sys.executable, place, "both", [values[:300], values[300:]])
    spent = [side.turn(), side.turn()]
    side.close()
    assert all(0 < turn.cpu < side.start.cpu + 60 for turn in spent)
    assert digest(pq.read_table(place / "newest"), Shape()) == expected(newest(made), Shape())
    versions = rows(place / "versions")
    kept = [event for event in map(json.loads, values) if event["op"] != "d"]
    assert versions.num_rows == len(kept) > 500
    assert versions.column("end_at").null_count == rows(place / "newest").num_rows
    assert rows(place / "newest") != versions.select(rows(place / "newest").column_names)


@pytest.mark.full
def test_a_side_that_ends_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="KeyError: 'scd3'"):
        Side("ours", sys.executable, tmp_path / "ours", "scd3", [[b"{}"]])
