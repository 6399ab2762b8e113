"""The section ``tables.cells``: which tables of a store become a table of cells and a wide table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Self

from pydantic import Field, field_validator, model_validator

from pipeline.settings.cells.columns import CELL_TYPES, WideColumn
from pipeline.settings.cells.families import FamilySettings
from pipeline.settings.cells.rules import CellsRule, Undeclared, WideRule
from pipeline.validation import Count, Section, Text, mistake

_DECLARED: Final = re.compile(
    r"(?P<place>:key|[^\s:#]+:[^\s#]*)(?:#(?P<storage>[bs-]))?"
    r"(?:\s+(?P<type>[a-z0-9]+)(?:\((?P<precision>\d+)(?:,\s*(?P<scale>\d+))?\))?)?"
)
_MS_PER_HOUR: Final = 3_600_000


def wide_column(name: str, declared: str) -> WideColumn | None:
    """A column by its declaration (``d:user_id#b long``, ``:key``, ``m: utf8``); None if the text is none."""
    found = _DECLARED.fullmatch(declared)
    if found is None:
        return None
    type_ = next((known for known in CELL_TYPES if known == (found["type"] or "utf8")), None)
    if type_ is None:
        return None
    family, _, qualifier = found["place"].partition(":")
    return WideColumn(
        name,
        family or None,
        qualifier if family and qualifier else None,
        type_,
        found["storage"] == "s",
        int(found["precision"] or 38),
        int(found["scale"] or 0),
    )


class WideSettings(Section):
    """A wide table: a row for each row of the store, columns by declaration."""

    table: Text | None = None
    """The ``database.table`` in the lake; null takes the store's own name of the table."""
    columns: Mapping[Text, Text] = Field(min_length=1)
    """Column in the lake: where its value is in the store, and its type. ``:key`` is the row key, ``cf:col`` a column,
    ``cf:`` a map of the family's undeclared columns, as Hive's HBase handler writes them; ``#b`` for values as HBase's
    ``Bytes`` writes them (the default), ``#s`` for values as text. Types: ``utf8``, ``long``, ``int``, ``short``,
    ``double``, ``float``, ``boolean``, ``decimal(p,s)``, ``bytes``."""
    undeclared: Undeclared = "quarantine"
    """What becomes of a value that no column holds: ``drop`` leaves it out, ``quarantine`` reports it. The table of
    cells has it in any case."""
    sweep_seconds: Count = 60
    """How often the rows are derived anew whose cells have expired (``ttl_seconds``)."""

    @model_validator(mode="after")
    def _columns(self) -> Self:
        parsed = self.parsed()
        if sum(column.is_key for column in parsed) != 1:
            raise mistake("exactly one column must be :key")
        places = [(column.family, column.qualifier) for column in parsed]
        if len(set(places)) != len(places):
            raise mistake("two columns have one place in the store")
        return self

    @field_validator("columns")
    @classmethod
    def _declared(cls, columns: Mapping[str, str]) -> Mapping[str, str]:
        for name, declared in columns.items():
            if wide_column(name, declared) is None:
                raise mistake(f"{name}: must be :key, family:column or family: with #b or #s and a type behind it")
        return columns

    def parsed(self) -> tuple[WideColumn, ...]:
        """The columns, the row key first."""
        found = [column for name, text in self.columns.items() if (column := wide_column(name, text)) is not None]
        return tuple(sorted(found, key=lambda column: not column.is_key))


class CellsSettings(Section):
    """A table of an HBase-like store: all its cells in one lake table, and a wide table derived from it."""

    source: Text
    """The store's table as ``namespace.table`` (HBase: ``default.table`` without a namespace)."""
    table: Text | None = None
    """The ``database.table`` of the cells in the lake; null takes the store's name with ``_cells`` behind it."""
    families: Mapping[Text, FamilySettings] = Field(default_factory=dict)
    """The column families, as the store declares them. One that is not here keeps one version of a column for ever."""
    lateness_hours: float = Field(default=24.0, gt=0)
    """How late a change may come. Cells that are masked, surplus or expired go at compaction when they are older, as
    HBase's major compaction does it."""
    wide: WideSettings | None = None
    """The wide table; null for none."""

    @model_validator(mode="after")
    def _named(self) -> Self:
        names = [self.source, self.cells_table, *([self.wide_table] if self.wide_table else [])]
        for name in names:
            if name.count(".") != 1 or not all(name.split(".")):
                raise mistake("names must be database.table")
        if len(set(names[1:])) != len(names[1:]):
            raise mistake("the table of cells and the wide table have one name")
        return self

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
        return CellsRule(families, int(self.lateness_hours * _MS_PER_HOUR), self.wide_table)

    def wide_rule(self) -> WideRule | None:
        """The rule of the wide table."""
        if self.wide is None:
            return None
        return WideRule(self.cells_table, self.wide.parsed(), self.wide.undeclared, self.wide.sweep_seconds)
