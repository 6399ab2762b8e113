"""The rules of visibility, slow and plain: cell by cell, as a person would apply them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from binlake.decode.cells import CELL_KEY
from binlake.hbase.rules.ordered import ORDER
from binlake.hbase.rules.rules import Moment
from binlake.hbase.settings.families import FamilyRule
from binlake.hbase.settings.rules import CellsRule

_FAMILY_KINDS = ("DeleteFamily", "DeleteFamilyVersion")


class Cell(NamedTuple):
    """A cell. ``written_ms`` is when the store logged it; None if unknown."""

    row: str
    family: str
    qualifier: str
    timestamp: int
    kind: str
    order: int
    written_ms: int | None = None

    @property
    def key(self) -> tuple[str, str, str, int, str]:
        """The record key."""
        return self.row, self.family, self.qualifier, self.timestamp, self.kind


def table_of(cells: Iterable[Cell]) -> pa.Table:
    """Cells as the rules take them."""
    rows = list(cells)
    types = (pa.string(), pa.string(), pa.string(), pa.int64(), pa.string())
    table = pa.table(
        {name: pa.array([cell[at] for cell in rows], types[at]) for at, name in enumerate(CELL_KEY)}
        | {ORDER: pa.array([cell.order for cell in rows], pa.int64())}
    )
    written = pa.array([cell.written_ms for cell in rows], pa.timestamp("ms", tz="UTC"))
    return table.append_column("written", written.cast(pa.timestamp("us", tz="UTC")))


def visible_cells(cells: Iterable[Cell], rule: CellsRule, moment: Moment) -> set[Cell]:
    """What a read has."""
    columns: dict[tuple[str, str, str], list[Cell]] = {}
    markers: list[Cell] = []
    for cell in cells:
        family = rule.family(cell.family)
        is_later = moment.as_of_ms is not None and cell.timestamp // rule.ticks_per_ms > moment.as_of_ms
        if is_later and (cell.kind == "Put" or family.keep_deleted):
            continue
        if cell.kind == "Put":
            columns.setdefault((cell.row, cell.family, cell.qualifier), []).append(cell)
        else:
            markers.append(cell)
    found: set[Cell] = set()
    for (row, name, qualifier), values in columns.items():
        mine = [
            marker
            for marker in markers
            if (marker.row, marker.family) == (row, name)
            and (marker.kind in _FAMILY_KINDS or marker.qualifier == qualifier)
        ]
        family = rule.family(name)
        left = _survivors_in_sequence(values, mine, family) if family.by_sequence else _survivors(values, mine)
        found.update(_versions(left, family, rule, moment))
    return found


def masks(marker: Cell, value: Cell) -> bool:
    """Whether the marker covers the value's timestamp."""
    if marker.kind in ("DeleteColumn", "DeleteFamily"):
        return value.timestamp <= marker.timestamp
    if marker.kind.startswith("DeleteRange:"):
        return int(marker.kind.removeprefix("DeleteRange:")) <= value.timestamp < marker.timestamp
    return value.timestamp == marker.timestamp


def _survivors(values: list[Cell], markers: list[Cell]) -> list[Cell]:
    return [value for value in values if not any(masks(marker, value) for marker in markers)]


def _survivors_in_sequence(values: list[Cell], markers: list[Cell], family: FamilyRule) -> list[Cell]:
    """The column written anew in the order of its sequence ids; a marker finds the newest versions only."""
    live: list[Cell] = []
    for cell in sorted(values + markers, key=lambda cell: (cell.order, cell.kind != "Put")):
        if cell.kind == "Put":
            live.append(cell)
        else:
            live = [value for value in _newest_entries(live, family.versions) if not masks(cell, value)]
    return live


def _newest_entries(values: list[Cell], versions: int) -> list[Cell]:
    """The newest versions; those of one entry count once, as HBase counts them."""
    kept: list[Cell] = []
    for value in sorted(values, key=lambda cell: -cell.timestamp):
        if len({one.order for one in kept}) < versions:
            kept.append(value)
    return kept


def _versions(values: list[Cell], family: FamilyRule, rule: CellsRule, moment: Moment) -> list[Cell]:
    newest = sorted(values, key=lambda cell: -cell.timestamp)[: family.versions]
    return [value for at, value in enumerate(newest) if at < family.min_versions or not expired(value, rule, moment)]


def expired(value: Cell, rule: CellsRule, moment: Moment) -> bool:
    """Whether the value is older than its family's TTL."""
    ttl = rule.family(value.family).ttl_ms
    return ttl is not None and value.timestamp < (moment.now_ms - ttl) * rule.ticks_per_ms
