"""A row of the source is erased from its table of any kind and from the quarantine; the stream goes on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from binlake.decode.changes import QuarantinedRecord, SourceTable
from binlake.proof.history.erasure import QUARANTINE, plan_row_erasure
from binlake.source.offsets import Offsets
from binlake.tables.catalog import catalog_table
from binlake.tables.lake import Lake
from binlake.tables.quarantine import QuarantineTable
from hudilake.errors import ConfigError
from hudilake.services.erasure.traces import Quarry, scan
from hudilake.services.fsck import Severity, fsck
from tests.binlake.stream.topic_log import services
from tests.judges import hudi_rs
from tests.programs.crash_points.story import NAMES, Place, Rows, rows_of, run_to

KINDS: dict[str, dict[str, Any]] = {
    "buckets": {},
    "buckets, compacted": {"compaction": {"mode": "inline", "after_commits": 2}},
    "record index": {"index": {"type": "record_index"}},
    "looked up, copy on write": {"type": "copy_on_write", "index": {"type": "global_simple"}},
    "copy on write": {"type": "copy_on_write"},
}
#: A deleted row of which tombstones are kept, and one that lives and has changed its partition.
DELETED, MOVED = "5", "2"


def accounts(place: Place) -> Rows:
    return rows_of(place.open().sub("shop/accounts"))


@pytest.mark.first(2)
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_erased_and_the_stream_goes_on(tmp_path: Path, kind: str) -> None:
    place = Place(str(tmp_path / "lake"))
    settings = place.settings(defaults=KINDS[kind])
    for number in range(4):
        run_to(number, place, place.open(), settings)
    expected = [row for row in accounts(place) if row[0] not in (int(DELETED), int(MOVED))]
    for key in (DELETED, MOVED):
        table = catalog_table(settings, place.open(), "shop.accounts")
        asked = plan_row_erasure(settings, table, key)
        assert asked.plans["shop.accounts"].holders
        for _, report in asked.carry_out(release_savepoints=False):
            assert report.is_done, report.scan
        assert scan(table.storage, Quarry(frozenset([key, f"id:{key}"]))).is_clean
    assert accounts(place) == expected
    shown = hudi_rs.snapshot(tmp_path / "lake/shop/accounts").select(list(NAMES)).to_pylist()
    assert sorted(tuple(row[n] for n in NAMES) for row in shown) == expected
    run_to(4, place, place.open(), settings)
    assert accounts(place) == sorted([*expected, (7, "fifth", "eu")])
    findings = [one for one in fsck(place.open().sub("shop/accounts")).findings if one.severity is not Severity.INFO]
    assert findings == []


def test_a_key_that_others_have_is_not_erased(tmp_path: Path) -> None:
    """It would take the row with an empty text."""
    place = Place(str(tmp_path / "lake"))
    settings = place.settings(defaults={"key": ["owner", "id"]})
    run_to(0, place, place.open(), settings)
    table = catalog_table(settings, place.open(), "shop.accounts")
    plan_row_erasure(settings, table, "owner=,id=1")
    with pytest.raises(ConfigError, match="other values have the same record key"):
        plan_row_erasure(settings, table, "owner=__empty__,id=1")


def test_quarantined_records_of_the_row_go_too(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "lake"))
    settings = place.settings()
    for number in range(4):
        run_to(number, place, place.open(), settings)
    source = SourceTable("shop", "orders")
    refused = [
        QuarantinedRecord("s.shop.orders", 0, 900 + n, 1, b'{"id": %d}' % n, b"{}", "other", "told", source)
        for n in (6, 7)
    ]
    ranges = Offsets({"s.shop.orders": {0: 900}}).ranges_to(Offsets({"s.shop.orders": {0: 908}}))
    with ThreadPoolExecutor(1) as pool:
        QuarantineTable(settings, Lake(place.open()), services()).write(refused, ranges, 9, pool)
    asked = plan_row_erasure(settings, catalog_table(settings, place.open(), "shop.orders"), "6")
    assert len(asked.quarantined) == 1
    assert asked.unmatched == 1  # the record of no known table that has this key, too
    names = [name for name, report in asked.carry_out(release_savepoints=False) if report.is_done]
    assert names == [QUARANTINE, "shop.orders"]
    again = plan_row_erasure(settings, catalog_table(settings, place.open(), "shop.orders"), "6")
    assert not again.quarantined
    assert plan_row_erasure(settings, catalog_table(settings, place.open(), "shop.orders"), "7").quarantined
