"""The columns that a table has between two statements, and row images that do not have them.

A connector may miss a statement: Debezium does not take in CREATE OR REPLACE TABLE of a table that exists, and goes on
to name the columns as before. Values then have wrong names, and a column that gets none would be null in the lake, also
where the source has no nulls. So the columns of an image are compared with the definition at its place:

- It has all columns that are NOT NULL. A statement that makes one is known even where the rest of the table is not.
- If the whole definition is known, it does not both lack a column and have an unknown one. An unknown one alone proves
  nothing: servers add columns that no statement names (invisible keys, the periods of versioned rows), and so do
  transforms of the connector.

Generated columns may be left out of an image, and so may those of unknown types and those that the settings leave out.

Statements come in a topic of their own, and may come later than rows. After the newest statement that is known, an
image is refused only if this is CREATE OR REPLACE, and the image what it is where the connector misses it. All others
may be due to the next statement.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.changes import META_NAMES, Op
from binlake.decode.ddl.clauses import Action, AddColumn, Clause, DropColumn, ModifyColumn, RenameColumn
from binlake.decode.ddl.columns import ColumnDefinition
from binlake.schema.rules.row_places import RowPlaces, has_binlog_place
from hudilake.format.definition.column_names import lake_name

#: Why rows are in quarantine whose columns are not those of the table at their place.
OTHER_COLUMNS = "other_columns"
_DO = "the connector missed a statement; if it leaves columns out on purpose, name them in columns.exclude"
_NAMED = 5


class Presence(IntEnum):
    """Whether a row image has a column: it may, it should unless the connector leaves it out, it must."""

    MAY = 0
    SHOULD = 1
    MUST = 2


@dataclass(frozen=True, slots=True)
class Definition:
    """The columns of a table from a statement on, as far as statements give them.

    Args:
        order, seconds: of the statement, as in ``RowPlaces.before``.
        columns: names (``lake_name`` in lower case), and whether an image has them.
        whole: whether these are all columns.
        former: the columns before the statement, as far as they are known.
        replaces: whether the statement is CREATE OR REPLACE.
        until, until_seconds: of the next statement about the table; None if there is none.
    """

    order: int
    seconds: int | None
    columns: tuple[tuple[str, Presence], ...]
    whole: bool
    former: frozenset[str] = frozenset()
    replaces: bool = False
    until: int | None = None
    until_seconds: int | None = None

    def period(self, places: RowPlaces) -> npt.NDArray[np.bool_]:
        """A mask of the rows that are of this definition for certain."""
        earlier, unsure = places.before(self.order, self.seconds)
        mask = ~earlier & ~unsure
        if self.until is not None:
            mask &= places.before(self.until, self.until_seconds)[0]
        return mask

    def complaint(self, names: Collection[str]) -> str | None:
        """What is wrong with an image of these columns (``lake_name`` in lower case); None if nothing is."""
        lacking = [name for name, presence in self.columns if presence and name not in names]
        required = [name for name, presence in self.columns if presence is Presence.MUST and name not in names]
        unknown = sorted(set(names) - {name for name, _ in self.columns}) if self.whole and lacking else []
        if not (required or unknown) or not (self.until is not None or self._is_missed(lacking, names)):
            return None
        more = f" and has {_listed(unknown)}, which the table has not" if unknown else ""
        return f"the row lacks {_listed(required or lacking)}{more}: {_DO}"

    def _is_missed(self, lacking: Collection[str], names: Collection[str]) -> bool:
        """Whether an image is one from before the statement: it lacks what is new, and has what is gone."""
        mine = {name for name, _ in self.columns}
        return self.replaces and self.whole and not self.former & set(lacking) and set(names) - mine <= self.former


def misnamed(
    rows: pa.Table, places: RowPlaces, definitions: Iterable[Definition]
) -> Iterable[tuple[npt.NDArray[np.bool_], str]]:
    """Masks of rows whose columns are not those of their definition, each with the reason.

    Args:
        rows: n rows as decoded, with META_FIELDS. Deletes may have the key alone.
        places: of the rows.
        definitions: in order.
    """
    names = {lake_name(name).lower() for name in rows.column_names if name not in META_NAMES}
    for definition in definitions:
        why = definition.complaint(names)
        if why is not None:
            mask = definition.period(places) & (rows.column("__op").to_numpy() != int(Op.DELETE))
            if mask.any():
                yield mask, why


@dataclass
class DefinitionHistory:
    """Follows the columns of a table through its statements.

    Args:
        keeps: whether the settings let a column in.
        before: all columns before a statement, as the source's definitions have them; none if there are none.
    """

    keeps: Callable[[str], bool] = lambda name: True
    before: Callable[[int], Iterable[str]] = lambda order: ()
    known: list[Definition] = field(default_factory=list)

    def note(self, order: int, seconds: int | None, action: Action, clauses: Iterable[Clause]) -> None:
        """Note what a statement defines or changes. DROP defines nothing, and CREATE OR REPLACE is both.

        A statement that is ordered by its Kafka offset is left out: rows of other partitions have no place beside it.
        """
        if action in (Action.RENAME, Action.TRUNCATE) or not has_binlog_place(order):
            return
        last = self.known[-1] if self.known else None
        described = {_name(name): self._of_name(name) for name in self.before(order)}
        before = dict(last.columns) if last is not None and last.whole else described
        if action is Action.ALTER:
            begun = dict(last.columns) if last is not None and not before else before
            columns, whole = self._changed(begun, clauses), bool(before)
        else:
            columns = self._changed({}, clauses)
            whole = bool(columns)
        if last is not None and last.order == order:
            self.known.pop()
            self.known.append(replace(last, columns=tuple(columns.items()), whole=whole, replaces=True))
        elif last is None or columns != dict(last.columns) or whole != last.whole:
            if last is not None:
                self.known[-1] = replace(last, until=order, until_seconds=seconds)
            self.known.append(Definition(order, seconds, tuple(columns.items()), whole, frozenset(before)))

    def _changed(self, before: dict[str, Presence], clauses: Iterable[Clause]) -> dict[str, Presence]:
        """The columns after a statement, whose clauses hold at once: it may swap two names."""
        left, made = dict(before), dict[str, Presence]()
        for clause in clauses:
            if isinstance(clause, DropColumn):
                left.pop(_name(clause.name), None)
            elif isinstance(clause, RenameColumn) and clause.column is None:
                left.pop(_name(clause.old), None)
                if _name(clause.old) in before:
                    made[_name(clause.new)] = before[_name(clause.old)]
            elif isinstance(clause, AddColumn | ModifyColumn | RenameColumn) and clause.column is not None:
                left.pop(_name(clause.old if isinstance(clause, RenameColumn) else clause.column.name), None)
                there = isinstance(clause, AddColumn) and clause.if_not_exists
                made[_name(clause.column.name)] = self._presence(clause.column, there=there)
        return left | made

    def _of_name(self, name: str) -> Presence:
        return Presence.SHOULD if self.keeps(name) else Presence.MAY

    def _presence(self, column: ColumnDefinition, *, there: bool) -> Presence:
        """``there``: whether the column may have existed before, in another form."""
        if column.generated or column.type is None or not self.keeps(column.name):
            return Presence.MAY
        return Presence.SHOULD if column.nullable or there else Presence.MUST


def _name(column: str) -> str:
    return lake_name(column).lower()


def _listed(names: Collection[str]) -> str:
    shown = list(names)
    more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    return f"column {shown[0]}" if len(shown) == 1 else f"columns {', '.join(shown[:_NAMED])}{more}"
