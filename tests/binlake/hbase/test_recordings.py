"""The recordings, replayed by the reference rules, equal the final scans of the real HBase."""

from __future__ import annotations

import pytest

from tests.binlake.hbase.recordings import PROXY_TABLES, TABLES, described, proxy_topic, raw_truth, topic, truth, untold
from tests.binlake.hbase.visibility import edits, visible


@pytest.mark.parametrize("table", TABLES)
def test_replayed_wal_equals_the_final_scan(table: str) -> None:
    about = described()[table]
    got = visible(
        (edit for part in topic(table, "wal").values() for edit in edits(part)), about.families, about.scan_ts_ms
    )
    want = truth(table)
    differ = {place for place in got.keys() | want.keys() if got.get(place) != want.get(place)}
    assert {place for place in differ if not untold(table, place)} == set()
    assert len(differ) == {"shop:orders": 11, "shop:quirks": 13}.get(table, 0)


@pytest.mark.parametrize("table", TABLES)
def test_raw_scan_has_each_visible_cell(table: str) -> None:
    puts = {cell.place: cell.value for cell in raw_truth(table) if cell.kind == "Put"}
    assert truth(table).items() <= puts.items()


@pytest.mark.parametrize("table", TABLES)
def test_events_hold_a_record_for_each_cell(table: str) -> None:
    cells = sum(1 for part in topic(table, "wal").values() for _ in edits(part))
    assert sum(len(part) for part in topic(table, "events").values()) == cells


@pytest.mark.parametrize("table", PROXY_TABLES)
def test_proxy_writes_to_one_partition_by_row(table: str) -> None:
    assert all(
        key is not None and key in value
        for part in proxy_topic(table).values()
        for key, value in zip(part.keys, part.values, strict=True)
        if value
    )
