"""A scan and a stream that begins before it give what the store has at the end, whichever of the two comes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from binlake.decode.changes import RawRecords, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions
from binlake.decode.schemas.schemas import DeclaredSchemas
from binlake.hbase.formats.cell_scan import scan_topic
from binlake.hbase.rules.rules import Moment
from binlake.hbase.settings.families import FamilyRule
from binlake.hbase.settings.rules import CellsRule
from tests.binlake.hbase.recordings import CellKind, CellPlace, RawCell
from tests.binlake.hbase.rules.drawn import FAMILIES, NOW_MS, cells
from tests.binlake.hbase.rules.reference import Cell, masks, visible_cells
from tests.binlake.hbase.scans import as_json, rows_of
from tests.hypothesis_profile import scaled

_TABLE = SourceTable("shop", "orders")
#: The sequence id of a region's first put.
_FIRST = 4
_VERSION_DELETES = ("Delete", "DeleteFamilyVersion")
_NOW = Moment(NOW_MS)


def family_rules(by_sequence: bool) -> st.SearchStrategy[CellsRule]:
    family = st.builds(
        FamilyRule,
        versions=st.integers(1, 3),
        by_sequence=st.just(by_sequence),
        ttl_ms=st.none() | st.integers(20, 70),
        name=st.just(""),
    )
    return st.tuples(family, family).map(
        lambda two: CellsRule(tuple(replace(rule, name=name) for rule, name in zip(two, FAMILIES, strict=True)))
    )


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Cell], int, int]:
    """What was written, in sequence; where the stream begins; where the scan is made."""
    written = [
        cell._replace(order=_FIRST + at) for at, cell in enumerate(draw(st.lists(cells(ranges=False), max_size=25)))
    ]
    begin = draw(st.integers(0, len(written)))
    return written, begin, draw(st.integers(begin, len(written)))


def keyed(written: Sequence[Cell]) -> list[Cell]:
    """The newest of each key, as a table has them, and their orders only."""
    return list({cell.key: cell for cell in sorted(written, key=lambda cell: cell.order)}.values())


def loaded(scanned: Sequence[Cell], rule: CellsRule) -> list[Cell]:
    """The cells of a scan, as the reader makes rows of them."""
    places = [
        RawCell(
            CellPlace(cell.row.encode(), cell.family.encode(), cell.qualifier.encode(), cell.timestamp),
            cast("CellKind", cell.kind),
            b"",
        )
        for cell in scanned
    ]
    values = as_json(rows_of(places, raw=any(cell.kind != "Put" for cell in scanned))).splitlines()
    count = len(values)
    by_sequence = tuple((_TABLE, family.name) for family in rule.families if family.by_sequence)
    stamps = np.zeros(count, dtype=np.int64)
    records = RawRecords(scan_topic(_TABLE, "f"), 0, np.arange(count), stamps, [None] * count, list(values))
    decoded = decode(records, DeclaredSchemas({}), DecodeOptions(by_sequence=by_sequence))
    assert not decoded.quarantined
    return [
        Cell(row["row"], row["family"], row["qualifier"], row["timestamp"], row["kind"], row["__order"])
        for batch in decoded.changes
        for row in batch.rows.to_pylist()
    ]


def shown(table: Sequence[Cell], rule: CellsRule) -> set[tuple[str, str, str, int, str]]:
    return {cell.key for cell in visible_cells(keyed(table), rule, _NOW)}


@given(histories(), family_rules(by_sequence=False))
@settings(max_examples=scaled(250))
def test_raw_scan_and_stream_are_the_store(history: tuple[list[Cell], int, int], rule: CellsRule) -> None:
    written, begin, scan = history
    table = [*loaded(keyed(written[:scan]), rule), *written[begin:]]
    assert shown(table, rule) == shown(written, rule)


_THREE_VERSIONS = CellsRule(tuple(FamilyRule(name, versions=3, by_sequence=True) for name in FAMILIES))
_SURPLUS = [
    *(Cell("a", "d", "q", at, "Put", _FIRST + at) for at in range(4)),
    Cell("a", "d", "q", 3, "Delete", _FIRST + 4),
]


@given(histories(), family_rules(by_sequence=True))
@example((_SURPLUS, 3, 3), _THREE_VERSIONS)  # the delete finds three versions, and leaves two
@settings(max_examples=scaled(250))
def test_plain_scan_of_families_by_sequence_is_exact(history: tuple[list[Cell], int, int], rule: CellsRule) -> None:
    written, begin, scan = history
    table = [*loaded(list(visible_cells(keyed(written[:scan]), rule, _NOW)), rule), *written[begin:]]
    assert shown(table, rule) == shown(written, rule)


@given(histories(), family_rules(by_sequence=False))
@settings(max_examples=scaled(250))
def test_plain_scan_lacks_only_what_is_documented(history: tuple[list[Cell], int, int], rule: CellsRule) -> None:
    written, begin, scan = history
    table = [*loaded(list(visible_cells(keyed(written[:scan]), rule, _NOW)), rule), *written[begin:]]
    before = [cell for cell in written[:begin] if cell.kind != "Put"]
    for lacking in shown(table, rule) ^ shown(written, rule):
        mine = [cell for cell in written[begin:] if _touches(cell, lacking)]
        exposed = any(cell.kind in _VERSION_DELETES and _touches(cell, lacking) for cell in written[scan:])
        masked = [marker for marker in before if _touches(marker, lacking)]
        late = any(masks(marker, cell) for cell in mine if cell.kind == "Put" for marker in masked)
        assert exposed or late


def _touches(cell: Cell, place: tuple[str, str, str, int, str]) -> bool:
    """Whether a cell is of the column of a place, or of its whole family."""
    return (cell.row, cell.family) == place[:2] and (cell.qualifier == place[2] or "Family" in cell.kind)
