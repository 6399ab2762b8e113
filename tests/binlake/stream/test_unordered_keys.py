"""Tables by another key than the source's: several partitions may have changes of one row at one position."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudilake.storage import open_storage
from tests.binlake.stream.test_exactly_once import row, runner
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, event, settings
from tests.judges.agreement import read_ourselves


def played(path: Path, rules: dict[str, Any], partitions: int) -> tuple[str, list[Any]]:
    """What the table's progress warns of, and its ids: row 1, whose owner is ann, becomes row 2 at position 600."""
    log = TopicLog()
    log.add("s.shop.orders", event("orders", "c", 500, row(1, "ann")), {"id": 1})
    log.add("s.shop.orders", event("orders", "c", 600, row(2, "ann")), {"id": 2}, partitions - 1)
    config = settings(str(path), ["orders"], tables={"defaults": rules})
    stream = runner(config, open_storage(str(path), {"fsync": "false"}))
    warnings = []
    for batch in range(2):
        done = stream.run(batch, log.end(), 0, LocalEngine(log))
        warnings += [table.warning or "" for table in done.tables] if done is not None else []
        log.add("s.shop.orders", event("orders", "d", 600, row(1, "ann")), {"id": 1})
    return " ".join(warnings), read_ourselves(path / "shop" / "orders").column("id").to_pylist()


def test_changes_of_one_row_in_two_partitions_are_in_doubt(tmp_path: Path) -> None:
    """The delete of the row before comes last, at the position of the row after: the row is gone."""
    warned, ids = played(tmp_path, {"key": ["owner"]}, 2)
    assert ids == []
    assert "message.key.columns" in warned


@pytest.mark.parametrize(("rules", "partitions"), [({"key": ["owner"]}, 1), ({}, 2), ({"key": ["region", "id"]}, 2)])
def test_control_no_doubt(tmp_path: Path, rules: dict[str, Any], partitions: int) -> None:
    """In one partition, by the source's key, or by one that has the source's in it."""
    warned, _ = played(tmp_path, rules, partitions)
    assert warned.strip() == ""
