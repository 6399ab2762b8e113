"""Recorded WAL entries through the stream into the table of cells, which equals HBase's own raw scan."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.binlake.hbase.cells_world import CellsWorld, cells_of
from tests.binlake.hbase.recordings import TABLES, CellPlace, RawCell, described, raw_truth, topic, truth, untold
from tests.binlake.hbase.visibility import Edit, edits, visible
from tests.hypothesis_profile import scaled

#: Tables whose regions were compacted (a split, the ``quirks``' major compaction), so that HBase has dropped cells.
COMPACTED = ("shop:orders", "shop:quirks")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> CellsWorld:
    """All recorded topics of WAL entries, each table in a batch of its own."""
    world = CellsWorld(tmp_path_factory.mktemp("cells"), TABLES)
    for table in TABLES:
        world.play(table)
    return world


@pytest.mark.parametrize("table", TABLES)
def test_equals_the_raw_scan(played: CellsWorld, table: str) -> None:
    """Every cell of the raw scan is there, once. More than it is there only of tables that HBase has compacted: values
    that the rules over all events do not show, and markers that are done (the final scan, below, is the same)."""
    cells = cells_of(played.cells(table.partition(":")[2]))
    assert max(Counter(cells).values()) == 1
    assert set(raw_truth(table)) <= set(cells)
    more = set(cells) - set(raw_truth(table))
    assert bool(more) == (table in COMPACTED)
    shown = _shown(table, cells)
    assert [c for c in more if c.kind == "Put" and c.place in shown and not untold(table, c.place)] == []


@pytest.mark.parametrize("table", TABLES)
def test_the_rules_over_it_give_the_final_scan(played: CellsWorld, table: str) -> None:
    """The table has what the rules need, the order of the writes too."""
    stored = played.cells(table.partition(":")[2])
    orders = stored.column("_binlake_order").to_pylist()
    described_ = described()[table]
    edits_ = [Edit(c.place, c.kind, c.value, (order, 0)) for c, order in zip(cells_of(stored), orders, strict=True)]
    found, wanted = visible(edits_, described_.families, described_.scan_ts_ms), truth(table)
    differ = {place for place in found.keys() | wanted.keys() if found.get(place) != wanted.get(place)}
    assert {place for place in differ if not untold(table, place)} == set()
    assert len(wanted) > len(differ)


def _shown(table: str, cells: list[RawCell]) -> set[CellPlace]:
    """The places of cells that are visible by the rules over all recorded entries."""
    told = [edit for records in topic(table, "wal").values() for edit in edits(records)]
    assert {RawCell(edit.place, edit.kind, edit.value) for edit in told} >= set(cells)
    return set(visible(told, described()[table].families, described()[table].scan_ts_ms))


@given(data=st.data())
@settings(max_examples=scaled(20))
def test_no_order_of_delivery_makes_a_difference(played: CellsWorld, data: st.DataObject) -> None:
    """Entries shuffled, doubled, over two partitions and cut into batches anyhow give the same rows."""
    entries = [value for records in topic("shop:counters", "wal").values() for value in records.values]
    again = data.draw(st.lists(st.integers(0, len(entries) - 1), max_size=100), "delivered again")
    chance = data.draw(st.randoms(use_true_random=False), "order")
    order = [*range(len(entries)), *again]
    chance.shuffle(order)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(order)), min_size=1, max_size=3), "batches"))
    with tempfile.TemporaryDirectory() as place:
        world = CellsWorld(Path(place), ["shop:counters"])
        for start, end in zip([0, *cuts], [*cuts, len(order)], strict=True):
            for i in order[start:end]:
                world.log.add("hbase.shop.counters.wal", entries[i], None, chance.randrange(2))
            world.feed()
        assert world.cells("counters").equals(played.cells("counters"))
