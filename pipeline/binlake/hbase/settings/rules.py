"""The rules of tables of cells and of the wide tables that are derived from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from binlake.hbase.settings.declared import WideColumn
from binlake.hbase.settings.families import FamilyRule

#: What becomes of a visible cell that no column of the wide table holds.
Undeclared = Literal["drop", "quarantine"]


@dataclass(frozen=True, slots=True)
class CellsRule:
    """The rules of a table of cells.

    Args:
        families: as declared. Any other family has the defaults of ``FamilyRule``, but for ``by_sequence``.
        lateness_ms: masked, surplus and expired cells go at compaction once they are older than this.
        wide: the name (``database.table``) of the wide table that is derived from it; None for none.
        by_sequence: of families that are not declared.
        ticks_per_ms: how many units of the store's timestamps a millisecond has: HBase 1, Bigtable 1,000.
    """

    families: tuple[FamilyRule, ...] = ()
    lateness_ms: int = 86_400_000
    wide: str | None = None
    by_sequence: bool = False
    ticks_per_ms: int = 1

    @property
    def expires(self) -> bool:
        """Whether cells of a family expire."""
        return any(family.ttl_ms is not None for family in self.families)

    def family(self, name: str) -> FamilyRule:
        """The rule of a family."""
        undeclared = FamilyRule(name, by_sequence=self.by_sequence)
        return next((one for one in self.families if one.name == name), undeclared)


@dataclass(frozen=True, slots=True)
class WideRule:
    """The rules of a wide table.

    Args:
        cells: the name (``database.table``) of the table of cells that it is derived from.
        columns: the row key first.
        undeclared: what becomes of cells that no column holds.
        sweep_seconds: how often rows are derived anew because cells have expired.
    """

    cells: str
    columns: tuple[WideColumn, ...]
    undeclared: Undeclared = "quarantine"
    sweep_seconds: int = 60

    @property
    def key(self) -> WideColumn:
        """The column of the row key."""
        return self.columns[0]
