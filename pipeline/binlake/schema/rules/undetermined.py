"""What a statement does to rows and the log does not determine: recorded with the statement, until rows are compared.

A conversion, default or expression whose result depends on more than the log tells leaves the column null, or as it
was, in rows from before the statement. The commit that carries the statement out records the column and the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import Renames, names_after
from binlake.decode.ddl.foreign_keys import Cascade

#: The column name that stands for whole rows, of which some may have changed or gone.
WHOLE_ROWS = ""
_FOREIGN_KEY = "the foreign key to "


@dataclass(frozen=True, slots=True)
class UndeterminedEffect:
    """A column (source name; ``WHOLE_ROWS`` for rows as a whole) whose values a statement leaves open, and why."""

    column: str
    why: str

    @property
    def lasts(self) -> bool:
        """Whether later changes leave it open again: a comparison tells of the rows before it only."""
        return self.why.startswith(_FOREIGN_KEY)

    def __str__(self) -> str:
        return f"not determined: {self.column or 'rows'}: {self.why}"


def undetermined_by(foreign_key: Cascade) -> UndeterminedEffect:
    """What a foreign key leaves open: the rows, or the columns that lose their value."""
    return UndeterminedEffect(
        WHOLE_ROWS if foreign_key.removes else ", ".join(foreign_key.columns),
        f"{_FOREIGN_KEY}{foreign_key.parent} ({', '.join(foreign_key.actions)}) changes rows without an event",
    )


@dataclass(frozen=True, slots=True)
class UndeterminedColumn:
    """The same with the statement that left it open. ``order``: rows with a lower ordering value are concerned."""

    column: str
    why: str
    statement: str
    place: str
    order: int

    def __str__(self) -> str:
        return f"{self.column or 'rows'}: {self.why} ({self.place} {self.statement})"


class _Statement(Protocol):
    """A judged statement (``entries.DdlEntry`` is one)."""

    @property
    def source(self) -> SourceTable: ...
    @property
    def order(self) -> int: ...
    @property
    def place(self) -> str: ...
    @property
    def statement(self) -> str: ...
    @property
    def renames(self) -> Renames: ...
    @property
    def undetermined(self) -> tuple[UndeterminedEffect, ...]: ...


def undetermined_columns(entries: Iterable[_Statement], verified: int = -1) -> list[UndeterminedColumn]:
    """The columns that the statements of one lake table left open, in order, by the names that the source gives them
    after all statements. What it has dropped since is left out.

    ``entries``: in order. ``verified``: the ordering value up to which the table is known to be as its source; what
    statements at or below it left open is left out, but for what lasts.
    """
    columns: list[tuple[SourceTable, UndeterminedColumn]] = []
    for entry in entries:
        if entry.renames:
            columns = [
                (source, after)
                for source, one in columns
                for after in (_after(one, entry.renames) if source == entry.source else (one,))
            ]
        columns += [
            (entry.source, UndeterminedColumn(one.column, one.why, entry.statement, entry.place, entry.order))
            for one in entry.undetermined
            if entry.order > verified or one.lasts
        ]
    return [column for _, column in columns]


def _after(one: UndeterminedColumn, renames: Renames) -> tuple[UndeterminedColumn, ...]:
    """The column, or the columns, after a statement; none if it drops them."""
    names = names_after(one.column.split(", "), renames)
    return (replace(one, column=", ".join(names)),) if names else ()
