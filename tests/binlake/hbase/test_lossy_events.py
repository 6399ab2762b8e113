"""What the Avro of HBase's Kafka proxy loses: the cells of the final scan that differ, counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.binlake.hbase.cells_world import CellsWorld, cells_of
from tests.binlake.hbase.recordings import CellPlace, described, topic, truth
from tests.binlake.hbase.visibility import Edit, visible

#: Table -> differing cells of all versions and of the newest ones. Those of ``orders`` and ``quirks`` come from deletes
#: of one version, which are taken for deletes of the column, and from what no event tells (``recordings.untold``).
DIFFER = {"shop:orders": (34, 14), "shop:quirks": (51, 29), "shop:counters": (0, 0), "shop:clicks": (0, 0)}


def newest(cells: dict[CellPlace, bytes]) -> dict[tuple[bytes, bytes, bytes], tuple[int, bytes]]:
    found: dict[tuple[bytes, bytes, bytes], tuple[int, bytes]] = {}
    for place, value in cells.items():
        found[place[:3]] = max(found.get(place[:3], (-1, b"")), (place.timestamp_ms, value))
    return found


@pytest.mark.parametrize("table", DIFFER)
def test_so_much_is_lost(tmp_path: Path, table: str) -> None:
    world = CellsWorld(tmp_path, [table], form="hbase_avro")
    for records in topic(table, "events").values():
        world.deliver(records)
    world.feed()
    stored = world.cells(table.partition(":")[2])
    edits = [
        Edit(cell.place, cell.kind, cell.value, (order, 0))
        for cell, order in zip(cells_of(stored), stored.column("_binlake_order").to_pylist(), strict=True)
    ]
    about = described()[table]
    families = {name: replace(family, by_sequence=False) for name, family in about.families.items()}
    found, wanted = visible(edits, families, about.scan_ts_ms), truth(table)
    every = sum(found.get(place) != wanted.get(place) for place in found.keys() | wanted.keys())
    now, then = newest(found), newest(wanted)
    assert (every, sum(now.get(column) != then.get(column) for column in now.keys() | then.keys())) == DIFFER[table]
