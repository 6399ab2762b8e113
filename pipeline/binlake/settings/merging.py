"""How rows come together: merge engines of a table, and tables whose columns come from several sources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from binlake.settings.sql_expression import check_expression
from hudilake.format.definition.merging import Function, OnDelete
from hudilake.validation import EACH_ONCE, ColumnNames, Section, Text, mistake

Engine = Literal["newest", "partial_update", "first_row", "aggregate", "scd2", "bitemporal", "changes"]

_GROUP_NAME = re.compile(r"[a-z][a-z0-9_]{0,29}")


@dataclass(frozen=True, slots=True)
class MergeRule:
    """How events of one record key become a row. ``functions``: (column, function), for ``aggregate``.
    ``track``, ``track_except``: the columns whose changes make versions, and those whose changes make none."""

    engine: Engine = "newest"
    functions: tuple[tuple[str, Function], ...] = ()
    track: tuple[str, ...] | None = None
    track_except: tuple[str, ...] | None = None

    @property
    def keeps_versions(self) -> bool:
        """Whether a row is a version of a row of the source, what the lake knew of one, or a change of one."""
        return self.engine in ("scd2", "bitemporal", "changes")

    @property
    def names_transactions(self) -> bool:
        """Whether a row names the transaction of its change."""
        return self.engine == "changes"

    def refusal(self, text: str) -> str | None:
        """Why a table with an engine is refused: ``text`` with the engine for {}; None where the newest event is the
        row."""
        return text.format(self.engine) if self.engine != "newest" else None


@dataclass(frozen=True, slots=True)
class GroupRule:
    """One source of a stitched table, and the group of columns that it feeds.

    ``index``: among the table's sources. ``key``: (column in the lake, column of the source). ``columns``: (column in
    the lake, column of the source or SQL expression); None for all but the key's. ``others``: the columns of the other
    groups, lower case.
    """

    index: int
    name: str
    key: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str], ...] | None = None
    on_delete: OnDelete = "columns"
    others: frozenset[str] = frozenset()


class MergeSettings(Section):
    """How events of one record key become a row."""

    engine: Engine = "newest"
    """``newest``: the newest event is the row. ``partial_update``: a null in an event leaves the column as it is.
    ``first_row``: the oldest event is the row. ``aggregate``: each column is computed from all events by a function.
    ``scd2``: every event is a row of its own, valid from its place until that of the next event of its key.
    ``bitemporal``: as ``scd2``, and what the lake held of a version before it knew better stays, with its time.
    ``changes``: every change is a row of its own, and one more with the row before it if it is an update."""
    columns: Annotated[Mapping[Text, Function], EACH_ONCE] = Field(default_factory=dict)
    """For ``aggregate``: the function of each column. A column without one has the value of the newest event."""
    track: ColumnNames | None = Field(default=None, min_length=1)
    """For ``scd2`` and ``bitemporal``: the columns whose changes make a version. A change of other columns alone mends
    the version that there is. null for every event."""
    track_except: ColumnNames | None = None
    """In place of ``track``: the columns whose changes make no version; those of all others do. With ``[]`` an event
    that changes nothing makes none."""

    @model_validator(mode="after")
    def _functions(self) -> Self:
        if self.columns and self.engine != "aggregate":
            raise mistake("columns have functions only with engine: aggregate")
        if self.engine == "aggregate" and not self.columns:
            raise mistake("aggregate needs the function of at least one column")
        if why := tracking_problem(self.engine, self.track, self.track_except):
            raise mistake(why)
        return self

    def rule(self) -> MergeRule:
        """The section as a rule."""
        return MergeRule(self.engine, tuple(self.columns.items()), self.track, self.track_except)


def tracking_problem(engine: str, track: tuple[str, ...] | None, besides: tuple[str, ...] | None) -> str | None:
    """Why a table with this engine cannot track these columns, or all but those; None if it can."""
    if track is not None and besides is not None:
        return "track and track_except exclude each other: take one of them"
    if (track is not None or besides is not None) and engine not in ("scd2", "bitemporal"):
        return f"track and track_except are for scd2 and bitemporal: {engine} makes no versions"
    return None


class StitchedSourceSettings(Section):
    """One source of a stitched table. It feeds a group of columns that has an order of its own."""

    name: Text
    """The group's name: small letters, digits and _. Do not change it later."""
    match: Text
    """Glob pattern on ``database.table`` of the source tables."""
    columns: Annotated[Mapping[Text, Text], EACH_ONCE] | None = None
    """Column in the lake: a column of the source, or an SQL expression (DuckDB) over its columns. null takes all
    columns but those of the key; only one source of a table may have null."""
    key: ColumnNames | None = Field(default=None, min_length=1)
    """The source's columns that hold the table's key, in its order; null if they have the same names."""
    on_delete: OnDelete = "columns"
    """What a delete at the source does: ``columns`` makes the group's columns null, ``row`` deletes the row. A row that
    no source knows any more is deleted."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if _GROUP_NAME.fullmatch(self.name) is None:
            raise mistake("name must begin with a small letter and hold small letters, digits and _ only (at most 30)")
        for column, text in (self.columns or {}).items():
            if problem := check_expression(text):
                raise mistake(f"{column}: {problem}")
        return self


class StitchedSettings(Section):
    """A lake table whose columns come from several sources and are stitched by key."""

    table: Text
    """The ``database.table`` in the lake. ``tables.overrides`` match it; ``tables.routes`` do not."""
    key: ColumnNames = Field(min_length=1)
    """The key columns in the lake."""
    sources: tuple[StitchedSourceSettings, ...] = Field(min_length=1)
    """The sources of its columns. Other streams may feed further groups: name them here too, in the same order."""

    @model_validator(mode="after")
    def _groups(self) -> Self:
        if self.table.count(".") != 1 or not all(self.table.split(".")):
            raise mistake("table must be database.table")
        names = [source.name for source in self.sources]
        if len(set(names)) != len(names):
            raise mistake("two sources have one name")
        if sum(source.columns is None for source in self.sources) > 1:
            raise mistake("only one source may take all columns (columns: null)")
        taken: set[str] = set()
        for source in self.sources:
            own = {column.lower() for column in source.columns or ()}
            if shared := sorted((own & taken) | (own & {name.lower() for name in self.key})):
                raise mistake(f"{source.name}: another source or the key has the columns {', '.join(shared)}")
            if source.key is not None and len(source.key) != len(self.key):
                raise mistake(f"{source.name}: key needs as many columns as the table's key")
            taken |= own
        return self

    @property
    def name(self) -> tuple[str, str]:
        """Database and table in the lake."""
        database, table = self.table.split(".")
        return database, table

    def groups(self) -> tuple[GroupRule, ...]:
        """The sources as rules, in their order."""
        named = [frozenset(column.lower() for column in source.columns or ()) for source in self.sources]
        return tuple(
            GroupRule(
                index,
                source.name,
                tuple(zip(self.key, source.key or self.key, strict=True)),
                None if source.columns is None else tuple(source.columns.items()),
                source.on_delete,
                frozenset().union(*named[:index], *named[index + 1 :]),
            )
            for index, source in enumerate(self.sources)
        )

    def group_of(self, source: str) -> GroupRule | None:
        """The rule of the first source whose pattern matches this ``database.table``."""
        indices = (index for index, one in enumerate(self.sources) if fnmatchcase(source, one.match))
        return next((self.groups()[index] for index in indices), None)
