"""The rules over the recorded WAL entries equal the final scans of the real HBase."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlake.hbase.rules.rules import Moment, visible
from binlake.hbase.settings.rules import CellsRule
from tests.binlake.hbase.recordings import TABLES, CellPlace, described, topic, truth
from tests.binlake.hbase.rules.reference import Cell, table_of
from tests.binlake.hbase.visibility import edits

_OWN_TTL = "a cell's own TTL is a tag, and tags do not travel"
_MARKER_GONE = "a major compaction dropped the marker before the value came"
_SURPLUS_GONE = "a major compaction dropped surplus versions before the newer ones were deleted"
_FLUSHED = "a flush dropped surplus versions before the newer ones were deleted, or left some that were surplus"
_EMPTY_QUALIFIER = "with NEW_VERSION_BEHAVIOR HBase lets the empty qualifier survive the delete of its family"

#: Where no replay can equal the scan, because no event tells of it: table -> row, family -> (timestamps, reason).
_UNTOLD: dict[str, dict[tuple[bytes, bytes], tuple[list[int], str]]] = {
    "shop:quirks": {
        (b"cell_ttl.kd", b"kd"): ([1795333612580], _OWN_TTL),
        (b"cell_ttl.nb", b"nb"): ([1795333612359], _OWN_TTL),
        (b"cell_ttl.v1", b"v1"): ([1795333611348], _OWN_TTL),
        (b"cell_ttl.v3", b"v3"): ([1795333611878], _OWN_TTL),
        (b"compacted.v1", b"v1"): ([400], _MARKER_GONE),
        (b"compacted.v3", b"v3"): ([400], _MARKER_GONE),
        (b"compacted_version.kd", b"kd"): ([50], _SURPLUS_GONE),
        (b"compacted_version.v1", b"v1"): ([200], _SURPLUS_GONE),
        (b"compacted_version.v3", b"v3"): ([50], _SURPLUS_GONE),
        (b"empty_qualifier_family.nb", b"nb"): ([100], _EMPTY_QUALIFIER),
        (b"many.kd", b"kd"): ([1, 2, 3], _SURPLUS_GONE),
    },
    "shop:orders": {
        (b"o00001", b"s"): ([1795333513020, 1795333519689], _FLUSHED),
        (b"o00026", b"s"): ([1795333519554], _FLUSHED),
        (b"o00030", b"s"): ([1795333497910, 1795333502235], _FLUSHED),
        (b"o00034", b"s"): ([1795333514794], _FLUSHED),
        (b"o00064", b"s"): ([1795333518307], _FLUSHED),
        (b"o00212", b"s"): ([1795333522932, 1795333525699], _FLUSHED),
        (b"o00237", b"s"): ([1795333496065], _FLUSHED),
        (b"o00241", b"s"): ([1795333508481], _FLUSHED),
    },
}


def _recorded(table: str) -> dict[Cell, bytes]:
    """The cells of a table, the newest of each key as a table of cells has it, and their values."""
    newest: dict[tuple[str, str, str, int, str], tuple[tuple[int, int], bytes]] = {}
    for part in topic(table, "wal").values():
        for edit in edits(part):
            row, family, qualifier, at = edit.place
            key = (row.hex(), family.hex(), qualifier.hex(), at, edit.kind)
            if key not in newest or newest[key][0] <= edit.order:
                newest[key] = (edit.order, edit.value)
    return {Cell(*key, order[0]): value for key, (order, value) in newest.items()}


def _rule(table: str) -> CellsRule:
    """The rule of a table whose families are named by their bytes in hexadecimal, as ``_recorded`` names them."""
    families = described()[table].families
    return CellsRule(tuple(replace(rule, name=name.hex()) for name, rule in families.items()))


def _place(cell: Cell) -> CellPlace:
    row, family, qualifier = (bytes.fromhex(text) for text in (cell.row, cell.family, cell.qualifier))
    return CellPlace(row, family, qualifier, cell.timestamp)


@pytest.mark.parametrize("table", TABLES)
def test_visible_cells_are_those_of_the_final_scan(table: str) -> None:
    """Exactly the exemptions are needed: one that is not fails, too."""
    recorded = _recorded(table)
    shown = visible(table_of(recorded), _rule(table), Moment(described()[table].scan_ts_ms)).to_pylist()
    got = {_place(cell): value for (cell, value), seen in zip(recorded.items(), shown, strict=True) if seen}
    want = truth(table)
    differ = {place for place in got.keys() | want.keys() if got.get(place) != want.get(place)}
    exempt = {(*place, at) for place, (times, _) in _UNTOLD.get(table, {}).items() for at in times}
    assert {(place.row, place.family, place.timestamp_ms) for place in differ} == exempt
