"""A wide table with the table of cells that it is derived from, by the settings."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Final

from binlake.decode.changes import SourceTable
from binlake.hbase.settings.lake_tables import split_name
from binlake.hbase.settings.rules import CellsRule, WideRule
from binlake.settings import Settings, TableRules

# What decides the wide rows of given cells, as a text that can be compared: rows of another text are derived anew.

#: Raised when a version of binlake reads the same declaration in another way.
_READING: Final = 1


def fingerprint(wide: WideRule, cells: CellsRule) -> str:
    """32 hexadecimal digits: the same for declarations that make the same wide rows of the same cells.

    The order of columns and families, families that are declared with their defaults, the lateness and the rhythm of
    sweeps do not count.
    """
    columns = sorted((asdict(column) for column in wide.columns), key=lambda column: str(column["name"]))
    kept = CellsRule(by_sequence=cells.by_sequence)
    families = sorted((one for one in cells.families if one != kept.family(one.name)), key=lambda one: one.name)
    said = {
        "reading": _READING,
        "columns": columns,
        "undeclared": wide.undeclared,
        "families": [asdict(family) for family in families],
        "by_sequence": cells.by_sequence,
        "ticks": cells.ticks_per_ms,
    }
    text = json.dumps(said, sort_keys=True, default=bytes.hex)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class DerivedPair:
    """A wide table and its table of cells.

    Args:
        wide: the name of the wide table.
        wide_rules: its rules.
        cells: the name of the table of cells.
        cells_rules: its rules.
        declared: columns and what becomes of undeclared cells.
        kept: what the families keep.
    """

    wide: SourceTable
    wide_rules: TableRules
    cells: SourceTable
    cells_rules: TableRules
    declared: WideRule
    kept: CellsRule

    @property
    def fingerprint(self) -> str:
        """Differs for another declaration by which other wide rows are derived from the same cells."""
        return fingerprint(self.declared, self.kept)


def derived_pairs(settings: Settings) -> list[DerivedPair]:
    """The wide tables of the settings, in their order."""
    pairs = [_pair(settings, _named(store.cells_table)) for store in settings.tables.cells if store.wide is not None]
    return [pair for pair in pairs if pair is not None]


def pair_of_wide(settings: Settings, wide: SourceTable) -> DerivedPair | None:
    """The pair of a wide table; None if the settings derive no such table."""
    return next((pair for pair in derived_pairs(settings) if pair.wide == wide), None)


def _pair(settings: Settings, cells: SourceTable) -> DerivedPair | None:
    cells_rules = settings.table_rules(cells)
    if cells_rules.cells is None or cells_rules.cells.wide is None:
        return None
    wide = _named(cells_rules.cells.wide)
    wide_rules = settings.table_rules(wide)
    if wide_rules.wide is None:
        return None
    return DerivedPair(wide, wide_rules, cells, cells_rules, wide_rules.wide, cells_rules.cells)


def _named(name: str) -> SourceTable:
    return SourceTable(*split_name(name))
