"""Base files laid out by the settings: by compaction, by copy-on-write commits, by commands, and by the first load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hudilake.format.layout.order import recorded_order
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.cli.fed_lake import BY_PROCESS, FedLake
from tests.binlake.load.replay.dumped import replay, settings
from tests.binlake.load.replay.test_replay import dumped
from tests.binlake.stream.test_exactly_once import EXPECTED, rows_of

#: Numbers and record keys differ in order: 2 comes before 10, "10" before "2".
BY_ID = {"columns": ["id"], "curve": "linear"}
BATCHES = 12


def stored(table: HudiTable, column: str) -> list[list[Any]]:
    """The values of a column as they stand in the base files of now."""
    root = Path(table.storage.uri.removeprefix("file://"))
    files = [piece.base_file for piece in table.file_slices() if piece.base_file is not None]
    return [pq.read_table(root / file.path, columns=[column])[0].to_pylist() for file in files]


def in_order(values: list[Any]) -> bool:
    return values == sorted(values)


KINDS: dict[str, dict[str, Any]] = {
    "buckets": {"compaction": {**BY_PROCESS, "order_by": BY_ID}},
    "copied": {"compaction": {**BY_PROCESS, "order_by": BY_ID}, "type": "copy_on_write"},
    "clustered": {"clustering": {"order_by": BY_ID}, "index": {"type": "simple"}, "type": "copy_on_write"},
    "clustered_logs": {"clustering": {"order_by": BY_ID}, "index": {"type": "bloom"}},
}


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", KINDS)
def test_base_files_are_in_the_order_of_the_settings(tmp_path: Path, kind: str) -> None:
    rules = {**KINDS[kind], "buckets": 1}
    lake = FedLake(tmp_path, rules)
    for batches in (BATCHES, 1):
        lake.feed(batches, ("a",))
        if rules.get("type") != "copy_on_write":
            done = lake.run("compact", "--now", "shop.a")
            assert done.exit_code == 0, done.output
        lake.check()
        (ids,) = stored(lake.table(), "id")
        assert in_order(ids)
        assert len(ids) == lake.batches - 1
        assert not in_order([str(number) for number in ids])  # the control: this is not the order of the keys
    if kind == "buckets":
        *_, last = (i for i in lake.table().timeline.completed() if i.action == "commit")
        recorded = recorded_order(lake.table().timeline.commit_metadata(last).extra)
        assert recorded is not None
        assert recorded.columns == ("id",)


def test_rebuckets_keep_the_order(tmp_path: Path) -> None:
    lake = FedLake(tmp_path, {"compaction": {**BY_PROCESS, "order_by": {"columns": ["owner", "id"]}}, "buckets": 1})
    lake.feed(BATCHES, ("a",))
    done = lake.run("rebucket", "shop.a", "--buckets", "2")
    assert done.exit_code == 0, done.output
    lake.check()
    files = stored(lake.table(), "id")
    assert len(files) == 2
    assert all(in_order(ids) for ids in files)


def test_a_first_load_is_laid_out(tmp_path: Path) -> None:
    dumped(tmp_path / "dumps")
    rules = {"buckets": 1, "compaction": {"order_by": BY_ID}}
    dump = {"path": "{database}.{table}/dt={date}/hour={hour}/*", "base_files_from_rows": 1}
    replay(settings(tmp_path / "lake", tmp_path / "dumps", dump=dump, tables={"defaults": rules}))
    assert rows_of(tmp_path / "lake", "orders") == EXPECTED["orders"]
    (ids,) = stored(HudiTable.open(open_storage(str(tmp_path / "lake" / "shop" / "orders"))), "id")
    assert in_order(ids)
    assert not in_order([str(number) for number in ids])
