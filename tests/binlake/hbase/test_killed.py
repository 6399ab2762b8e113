"""A process that writes recorded WAL entries to both tables is killed (-9) again and again: both equal the final
scan."""

from __future__ import annotations

import multiprocessing
import random
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from binlake.decode.changes import RawRecords
from binlake.tables.audit import OFFSET_KEYS, audit
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import open_storage
from tests.binlake.hbase.cells_world import CellsWorld, cells_of
from tests.binlake.hbase.recordings import topic
from tests.binlake.hbase.test_wide_tables import wanted_rows, wide_rows, world_of
from tests.binlake.hbase.visibility import edits
from tests.hypothesis_profile import is_nightly

_TABLE = "shop:orders"
_STEP = 60
_LONGEST_S = 120.0


def _recorded() -> dict[tuple[str, int], RawRecords]:
    return {(records.topic, records.partition): records for records in topic(_TABLE, "wal").values()}


def _go_on(world: CellsWorld, recorded: dict[tuple[str, int], RawRecords]) -> bool:
    """The next batch of at most ``_STEP`` records a partition; False if all are applied."""
    applied, news = world.runner.ledger.positions, False
    for (name, partition), records in recorded.items():
        start = applied.get(name, {}).get(partition, 0)
        end = min(len(records), start + _STEP)
        news = news or end > start
        world.log.records[name, partition] = list(zip(records.keys[:end], records.values[:end], strict=True))
    if news:
        world.feed()
    return news


def write_all(path: Path, told: Connection) -> None:
    """The process: it goes on from where the last one was, tells each batch, and ends when all is applied."""
    world, recorded = world_of(path, (_TABLE,)), _recorded()
    told.send("began")
    while _go_on(world, recorded):
        told.send("batch")
    told.send("ended")


def _killed(path: Path, draw: random.Random) -> bool:
    """Run the process and kill it in its first batch or a later one; False if it ended before."""
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe()
    process = context.Process(target=write_all, args=(path, theirs))
    process.start()
    theirs.close()
    for _ in range(draw.randint(1, 3)):
        assert ours.poll(_LONGEST_S), "the process does nothing"
        if ours.recv() == "ended":
            process.join()
            return False
    process.join(draw.uniform(0.0, 0.3))
    process.kill()
    process.join()
    return True


@pytest.mark.full
def test_both_tables_equal_the_final_scan(tmp_path: Path) -> None:
    multiprocessing.get_context("forkserver").set_forkserver_preload([__name__])
    draw = random.Random(random.randrange(1 << 30) if is_nightly() else 1)
    kills = sum(_killed(tmp_path, draw) for _ in range(30 if is_nightly() else 6))
    assert kills > 3
    world, recorded = world_of(tmp_path, (_TABLE,)), _recorded()
    while _go_on(world, recorded):
        pass
    assert wide_rows(world, _TABLE) == wanted_rows(_TABLE)
    stored = [(cell.place, cell.kind) for cell in cells_of(world.cells("orders"))]
    sent = {(edit.place, edit.kind) for records in recorded.values() for edit in edits(records)}
    assert sorted(stored) == sorted(sent)
    for name in ("orders", "orders_cells"):
        storage = open_storage(str(tmp_path / "lake" / "shop" / name))
        findings = [*fsck(storage, OFFSET_KEYS, grace_ms=0).findings, *audit(storage).findings]
        assert [one for one in findings if one.severity is Severity.ERROR] == []
