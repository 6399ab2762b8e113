"""What a comparison found, as values that are printed, kept for ``--resume`` and given to callers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from binlake.position.binlog_height import place_of
from binlake.proof.verify.columns import ColumnPlan
from binlake.proof.verify.places import FileGroups
from binlake.proof.verify.rows import KnownRows
from binlake.proof.verify.settle import Look

#: Characters of a cell that are shown.
_SHOWN = 80


class DifferenceKind(StrEnum):
    """How a row differs."""

    MISSING = "missing"
    """The source has it, the lake has not."""
    EXTRA = "extra"
    """The lake has it, the source has not."""
    DIFFERS = "differs"
    """Both have it, with other cells."""
    DOUBLED = "doubled"
    """Both have it, the lake more than once."""
    MISPLACED = "misplaced"
    """Both have it, the lake where its writer does not look for it."""
    AHEAD = "ahead"
    """Both have it, the lake with an ordering value that no change of the source has: later changes lose to it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell that differs, as text; None for null."""

    column: str
    source: str | None
    lake: str | None


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that differs.

    Args:
        kind: how.
        key: the key's values by column, as text; of a table without a key, all values.
        cells: of a row that both sides have.
        position: of the source at which it was confirmed.
        places: the file groups (partition path and file id) of a row that the lake has twice, or not where its writer
            looks for it.
        order: the ordering value of a row that is ahead of the source, and what it stands for.
    """

    kind: DifferenceKind
    key: Mapping[str, str | None]
    cells: tuple[Cell, ...]
    position: str
    places: tuple[str, ...] = ()
    order: str = ""


@dataclass
class TableResult:
    """The comparison of one table, or of a portion of it.

    Args:
        table: its name.
        source_rows: rows of the source at the positions of the comparison.
        changed_since: rows that were changed behind the position, and that were not compared there.
        changing: those of them that changed behind the position at every further look too.
        ranges, ranges_differing: of keys.
        fetched: rows that were fetched by their keys.
        differing: number of differing rows by kind.
        differences: some of them, as many as were asked for.
        unsettled: rows that differ as far as is known, and could not be confirmed.
        behind: whether the lake did not reach the source's position in time.
        repaired: rows that were repaired and found equal after it; they count among ``differing`` too.
        notes: columns and values that were not compared, and why.
        wrong: what differs besides single rows: the table's columns, or too many rows to name them.
        positions: of the source's snapshots.
        advice: what to do about the rows that differ; empty if none does.
        skipped: why nothing was compared; empty if something was.
        derived: whether nothing was compared because the rows follow from those of another table of the lake.
        seconds: the time it took.
        order: the ordering value of the earliest position at which a portion was compared, -1 if none was.
    """

    table: str
    source_rows: int = 0
    changed_since: int = 0
    changing: int = 0
    ranges: int = 0
    ranges_differing: int = 0
    fetched: int = 0
    differing: dict[str, int] = field(default_factory=dict)
    differences: list[RowDifference] = field(default_factory=list)
    unsettled: int = 0
    behind: bool = False
    repaired: int = 0
    notes: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    positions: list[str] = field(default_factory=list)
    advice: str = ""
    skipped: str = ""
    derived: bool = False
    seconds: float = 0.0
    order: int = -1

    @property
    def total(self) -> int:
        """The number of differing rows."""
        return sum(self.differing.values())

    @property
    def different(self) -> bool:
        """Whether something differs that was not repaired."""
        return bool(self.wrong) or self.total > self.repaired

    @property
    def open(self) -> bool:
        """Whether nothing differs as far as is known, but some rows could not be settled."""
        return not self.different and self.unsettled > 0

    @property
    def proven(self) -> bool:
        """Whether all rows and columns are as the source had them at ``order``."""
        whole = not self.skipped and not self.notes and self.order >= 0
        return whole and not self.different and not self.unsettled

    def add(self, other: TableResult, most: int) -> None:
        """Add the result of another portion, and keep at most ``most`` differences."""
        for name in (
            "source_rows",
            "changed_since",
            "ranges",
            "ranges_differing",
            "fetched",
            "unsettled",
            "changing",
            "repaired",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.seconds += other.seconds
        self.order = other.order if self.order < 0 else min(self.order, other.order)
        for kind, count in other.differing.items():
            self.differing[kind] = self.differing.get(kind, 0) + count
        self.differences = [*self.differences, *other.differences][:most]
        self.behind, self.advice = self.behind or other.behind, self.advice or other.advice
        for name in ("notes", "wrong", "positions"):
            setattr(self, name, list(dict.fromkeys([*getattr(self, name), *getattr(other, name)])))

    def note(self, difference: RowDifference, most: int) -> None:
        """Count a difference, and keep it if there are fewer than ``most``."""
        self.differing[difference.kind.value] = self.differing.get(difference.kind.value, 0) + 1
        if len(self.differences) < most:
            self.differences.append(difference)

    def to_json(self) -> dict[str, Any]:
        """Returns a dict of all fields by their names, in values that JSON can write."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> TableResult:
        """The reverse of ``to_json``. Raises KeyError, TypeError, ValueError."""
        result = TableResult(**data)
        result.differences = [
            RowDifference(
                DifferenceKind(d["kind"]),
                d["key"],
                tuple(Cell(**c) for c in d["cells"]),
                d["position"],
                tuple(d["places"]),
                d.get("order", ""),
            )
            for d in data["differences"]
        ]
        return result


def row_differences(look: Look, plan: ColumnPlan, groups: FileGroups) -> Iterator[RowDifference]:
    """The differing rows of a look, each key once (of a table without a key, each row). ``groups``: of the lake."""
    position = str(look.position)
    if not plan.keys:
        for kind, rows in ((DifferenceKind.MISSING, look.source), (DifferenceKind.EXTRA, look.lake)):
            for row in rows.rows.to_pylist():
                yield RowDifference(kind, {name: _text(v) for name, v in row.items()}, (), position)
        return
    for key in np.union1d(look.source.keys, look.lake.keys):
        source, lake = (rows.where(rows.keys == key) for rows in (look.source, look.lake))
        row = (source if len(source) else lake).rows
        names = {c.source.name: _text(row.column(c.source.name)[0].as_py()) for c in plan.key}
        places = tuple("/".join(filter(None, name)) for name in sorted(groups.of(lake.groups))) if _aside(lake) else ()
        yield RowDifference(_kind(source, lake), names, tuple(_cells(source, lake)), position, places, _order(lake))


def _kind(source: KnownRows, lake: KnownRows) -> DifferenceKind:
    """How the rows of one key differ."""
    if not len(source):
        return DifferenceKind.EXTRA
    if not len(lake):
        return DifferenceKind.MISSING
    if len(lake) > 1:
        return DifferenceKind.DOUBLED
    if lake.ahead.any():
        return DifferenceKind.AHEAD
    return DifferenceKind.MISPLACED if _aside(lake) else DifferenceKind.DIFFERS


def _order(lake: KnownRows) -> str:
    """The ordering value of a row that is ahead of the source, for people; empty for others."""
    ahead = lake.where(lake.ahead).orders
    if ahead is None or not len(ahead):
        return ""
    order = ~int(ahead.min())
    return f"order {order} ({place_of(order)})"


def _aside(lake: KnownRows) -> bool:
    """Whether the lake has the row twice, or not where its writer looks for it."""
    return len(lake) > 1 or bool(lake.astray is not None and lake.astray.any())


def _cells(source: KnownRows, lake: KnownRows) -> Iterator[Cell]:
    """The cells in which a row of the source differs from a row of the lake, of several from the first that does."""
    for number in range(len(lake) if len(source) else 0):
        differences = []
        for name in source.rows.column_names:
            one, other = source.rows.column(name)[0].as_py(), lake.rows.column(name)[number].as_py()
            if one != other or repr(one) != repr(other):  # 0.0 equals -0.0, but is not the same value
                differences.append(Cell(name, _text(one), _text(other)))
        if differences:
            yield from differences
            return


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return _short("0x" + value.hex())
    return _short(repr(value) if isinstance(value, str) else str(value))


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
