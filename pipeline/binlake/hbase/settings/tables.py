"""The section ``tables.cells``: which tables of a store become a table of cells and a wide table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from binlake.hbase.settings.families import FamilySettings
from binlake.hbase.settings.rules import CellsRule, WideRule
from binlake.hbase.settings.wide_table import WideSettings
from hudilake.validation import Section, Text, mistake

_MS_PER_HOUR: Final = 3_600_000
_MICROSECONDS_PER_MS: Final = 1_000


class CellsSettings(Section):
    """A table of an HBase-like store: all its cells in one lake table, and a wide table derived from it."""

    source: Text
    """The store's table as ``namespace.table`` (HBase: ``default.table`` without a namespace)."""
    store: Literal["hbase", "bigtable"] = "hbase"
    """Which store it is: Bigtable counts its timestamps in microseconds, and its deletes mask what was written before
    them; HBase counts milliseconds."""
    table: Text | None = None
    """The ``database.table`` of the cells in the lake; null takes the store's name with ``_cells`` behind it."""
    families: Mapping[Text, FamilySettings] = Field(default_factory=dict)
    """The column families, as the store declares them. One that is not here keeps one version of a column for ever. If
    any is here, those of the wide table's columns must be."""
    lateness_hours: float = Field(default=24.0, gt=0)
    """How late a change may come. Cells that are masked, surplus or expired go at compaction when they are older, as
    HBase's major compaction does it."""
    wide: WideSettings | None = None
    """The wide table; null for none."""

    @model_validator(mode="after")
    def _named(self) -> Self:
        for name in (self.source, *self.lake_tables):
            if name.count(".") != 1 or not all(name.split(".")):
                raise mistake("names must be database.table; a table without a namespace is default.table")
        if len({name.lower() for name in self.lake_tables}) != len(self.lake_tables):
            raise mistake("the table of cells and the wide table have one name")
        return self

    @model_validator(mode="after")
    def _families_are_known(self) -> Self:
        columns = self.wide.parsed() if self.wide is not None and self.families else ()
        for column in columns:
            if column.family is not None and column.family not in self.families:
                raise mistake(f"column {column.name} is of family {column.family}, which families does not declare")
        return self

    @property
    def lake_tables(self) -> tuple[str, ...]:
        """The names of its tables in the lake."""
        return (self.cells_table,) if self.wide_table is None else (self.cells_table, self.wide_table)

    @property
    def cells_table(self) -> str:
        """The name of the table of cells."""
        return self.table or f"{self.source}_cells"

    @property
    def wide_table(self) -> str | None:
        """The name of the wide table; None for none."""
        return None if self.wide is None else self.wide.table or self.source

    def cells_rule(self) -> CellsRule:
        """The rule of the table of cells."""
        families = tuple(settings.rule(name) for name, settings in self.families.items())
        lateness = int(self.lateness_hours * _MS_PER_HOUR)
        if self.store == "hbase":
            return CellsRule(families, lateness, self.wide_table)
        families = tuple(replace(one, by_sequence=True) for one in families)
        return CellsRule(families, lateness, self.wide_table, by_sequence=True, ticks_per_ms=_MICROSECONDS_PER_MS)

    def wide_rule(self) -> WideRule | None:
        """The rule of the wide table."""
        if self.wide is None:
            return None
        return WideRule(self.cells_table, self.wide.parsed(), self.wide.undeclared, self.wide.sweep_seconds)
