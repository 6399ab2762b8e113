"""Fan-out rules: the lake table of a source table, and the selection and form of its columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from binlake.settings.merging import GroupRule
from binlake.settings.sql_expression import check_expression
from binlake.settings.templates import placeholders
from binlake.settings.types import Regex
from hudilake.validation import EACH_ONCE, Section, Text, mistake


@dataclass(frozen=True, slots=True)
class ShardRule:
    """The column that distinguishes the rows of merged source tables, and its value for one of these tables."""

    column: str
    value: str
    in_key: bool = True


#: What one source table is of a lake table that several feed: some of its rows, or some of its columns.
Part = ShardRule | GroupRule


@dataclass(frozen=True, slots=True)
class Destination:
    """The lake table of a source table's rows: names as of a source table, and its part if several feed the table."""

    database: str
    table: str
    part: Part | None = None

    def later(self, number: int) -> Destination:
        """The destination of the ``number``-th table of one source name: a lake table of its own, or in a merged one a
        shard of its own. In a stitched one it feeds the same columns."""
        if number == 1 or isinstance(self.part, GroupRule):
            return self
        if self.part is None:
            return replace(self, table=f"{self.table}@@{number}")
        return replace(self, part=replace(self.part, value=f"{self.part.value}@@{number}"))


@dataclass(frozen=True, slots=True)
class MaskRule:
    """The way that the values of a column are masked. ``hash`` uses ``salt``; ``redact`` uses ``text``."""

    column: str
    how: Literal["hash", "redact", "null"]
    salt: str = field(default="", repr=False)
    text: str = "***"


@dataclass(frozen=True, slots=True)
class ColumnsRule:
    """The steps on a table's columns, in this order: computed ones are added, some are left out, some masked.

    ``computed``: (name, SQL expression). ``include``, ``exclude``: glob patterns on column names.
    """

    computed: tuple[tuple[str, str], ...] = ()
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    masks: tuple[MaskRule, ...] = ()

    def keeps(self, column: str) -> bool:
        """Whether a column is written. Names are compared without case, as MySQL does."""
        name = column.lower()
        taken = any(fnmatchcase(name, p.lower()) for p in self.include)
        return taken and not any(fnmatchcase(name, p.lower()) for p in self.exclude)


class ShardSettings(Section):
    """A column that names the source table of a row, where several source tables are merged."""

    column: Text
    """The column's name."""
    value: Text = "{table}"
    """Its value for one source table; the placeholders of ``to`` may be used."""
    in_key: bool = True
    """Make it the first column of the key, because the source tables may use the same keys; false if they never do."""


class RouteSettings(Section):
    """Source tables that go to another lake table than their own. The first route that matches is taken."""

    match: Regex
    """A regular expression that must match the whole ``database.table``."""
    to: Text | None
    """The ``database.table`` in the lake. Placeholders: ``{database}``, ``{table}``, ``{1}``... for the groups of the
    expression, ``{name}`` for named groups. null leaves the tables out."""
    shard: ShardSettings | None = None
    """Where several source tables go to one lake table: the column that distinguishes their rows."""

    @model_validator(mode="after")
    def _templates(self) -> Self:
        if self.to is None:
            return self
        groups = re.compile(self.match)
        known = {"database", "table", *groups.groupindex, *map(str, range(groups.groups + 1))}
        try:
            strange = (placeholders(self.to) | placeholders(self.shard.value if self.shard else "")) - known
        except ValueError as error:
            raise mistake("may hold no placeholders but {database}, {table} and the groups of match") from error
        if strange:
            raise mistake("may hold no placeholders but {database}, {table} and the groups of match")
        parts = self.to.split(".")
        if len(parts) != 2 or not all(parts):
            raise mistake("to must be database.table")
        return self

    def found_in(self, source: str) -> re.Match[str] | None:
        """The match if the route applies to this ``database.table``, else None."""
        return re.fullmatch(self.match, source)

    def destination(self, found: re.Match[str], database: str, table: str) -> Destination | None:
        """The lake table of a source table that the route matches; None if the route leaves it out."""
        if self.to is None:
            return None
        names = {"database": database, "table": table, **{k: v or "" for k, v in found.groupdict().items()}}
        groups = [found[0], *(group or "" for group in found.groups())]
        to_database, to_table = self.to.format(*groups, **names).split(".", 1)
        shard = self.shard
        rule = ShardRule(shard.column, shard.value.format(*groups, **names), shard.in_key) if shard else None
        return Destination(to_database, to_table, rule)


class MaskSettings(Section):
    """How the values of a column are masked before anything is written."""

    how: Literal["hash", "redact", "null"]
    """``hash``: HMAC-SHA-256 of the value's text under ``salt``, in hexadecimal: equal values stay equal. ``redact``:
    text becomes ``text``, any other value null. ``null``: null."""
    salt: SecretStr | None = None
    """The key of ``hash``, by reference (``${env:NAME}``). With another salt, the same value gets another hash."""
    text: str = "***"
    """What ``redact`` writes."""

    @model_validator(mode="after")
    def _salted(self) -> Self:
        if self.how == "hash" and (self.salt is None or not self.salt.get_secret_value()):
            raise mistake("hash needs a salt: without one, values can be found by trying")
        return self


class ColumnsSettings(Section):
    """Which columns of a table are written, and in what form."""

    include: tuple[Text, ...] = ("*",)
    """Glob patterns on column names, in any case: the columns that are written. Key columns must be among them."""
    exclude: tuple[Text, ...] = ()
    """Glob patterns on column names: the columns that are not written."""
    mask: Annotated[Mapping[Text, MaskSettings], EACH_ONCE] = Field(default_factory=dict)
    """Columns that are masked, by name."""
    computed: Annotated[Mapping[Text, Text], EACH_ONCE] = Field(default_factory=dict)
    """Additional columns, by name: an SQL expression (DuckDB) over the columns of the row, excluded and masked columns
    included. A partition rule may name a computed column."""

    @field_validator("computed")
    @classmethod
    def _expressions(cls, computed: Mapping[str, str]) -> Mapping[str, str]:
        for name, text in computed.items():
            if problem := check_expression(text):
                raise mistake(f"{name}: {problem}")
        return computed

    def rule(self) -> ColumnsRule | None:
        """The section as a rule; None if it changes nothing."""
        masks = tuple(
            MaskRule(name, m.how, m.salt.get_secret_value() if m.salt else "", m.text) for name, m in self.mask.items()
        )
        rule = ColumnsRule(tuple(self.computed.items()), self.include, self.exclude, masks)
        return None if rule == ColumnsRule() else rule
