"""The tables that tools for online schema changes make beside a table: which table they belong to, by their names.

pt-online-schema-change and gh-ost fill a copy of the table under another definition and swap the two by RENAME TABLE:

- pt-osc: CREATE TABLE ``_t_new`` (more ``_`` where the name is taken), ALTER TABLE, triggers, INSERT ... SELECT in
  chunks, RENAME TABLE t TO ``_t_old``, ``_t_new`` TO t, DROP TABLE ``_t_old``. With ``drop_swap``: DROP TABLE t,
  RENAME TABLE ``_t_new`` TO t. A run that fails drops ``_t_new``.
- gh-ost: CREATE TABLE ``_t_ghc`` (its own notes), CREATE TABLE ``_t_gho`` LIKE t, ALTER TABLE, INSERT ... SELECT,
  CREATE and DROP TABLE ``_t_del`` (a sentry), RENAME TABLE t TO ``_t_del``, ``_t_gho`` TO t (or both one after the
  other), DROP TABLE ``_t_del``. Old tables may have a time in their names.

A name alone makes no table a tool's: whether the table ``t`` exists, and whether a swap comes, the log tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from binlake.decode.changes import SourceTable
from binlake.schema.rules.undetermined import WHOLE_ROWS, UndeterminedEffect

_SHADOW = re.compile(r"_+(.+?)(?:_\d{14})?_(new|old|gho|ghc|del)")
_NOTES_END = "_ghc"
_NOTES_COLUMNS = frozenset({"id", "last_update", "hint", "value"})
#: How the record of a swap begins that changed a table's definition and none of its rows.
IN_PLACE = "swapped in from "


def shadowed(source: SourceTable) -> SourceTable | None:
    """The table whose shadow would have this name; None for a name of another form."""
    shadow_match = _SHADOW.fullmatch(source.table)
    return SourceTable(source.database, shadow_match[1]) if shadow_match else None


def swaps(old: SourceTable, new: SourceTable) -> bool:
    """Whether a RENAME TABLE of these names puts a shadow in place of its table, or the table away."""
    return shadowed(old) == new or shadowed(new) == old


def has_notes(source: SourceTable, columns: Iterable[str]) -> bool:
    """Whether a table holds what gh-ost notes for itself. ``columns``: those of its definition; none if unknown."""
    known = {name.lower() for name in columns}
    return source.table.endswith(_NOTES_END) and (not known or known == _NOTES_COLUMNS)


def swapped_unseen(shadow: SourceTable) -> tuple[UndeterminedEffect, ...]:
    """What a swap leaves open where the rows of the shadow are not known."""
    return _unseen(shadow, "those that it left out, merged or computed are not known")


def renamed_unseen(source: SourceTable) -> tuple[UndeterminedEffect, ...]:
    """What a table's new name leaves open where no row came under the former one."""
    return _unseen(source, "those that it had before it got its new name are missing")


def _unseen(source: SourceTable, so: str) -> tuple[UndeterminedEffect, ...]:
    what = f"the rows of {source} are not in the lake, so {so}; compare with binlake verify --repair, "
    return (UndeterminedEffect(WHOLE_ROWS, what + "or fetch the table anew with binlake table resync"),)


def _all_come(shadow: SourceTable, base: SourceTable) -> bool:
    return True


def _every_one(source: SourceTable) -> bool:
    return True


def _any_came(names: Collection[SourceTable], identity: SourceTable, new: SourceTable) -> bool:
    return True


def _none_has(shadow: SourceTable, base: SourceTable) -> bool:
    return False


@dataclass(frozen=True)
class ShadowFacts:
    """What is known of the tables of tools besides the statements.

    ``rows_come``: whether the lake gets the rows of a shadow (the first name), so that it can take the place of its
    table. ``has_rules``: whether the settings have rules for a table (the second name) that its shadow would not have
    under its own name (the first). ``in_place``: statements (ordering value, digest) that commits record as swaps of
    the definition alone. ``lake``: the lake tables that exist.
    ``rows_came``: whether rows of a table can have come under one of these names before it got another one (its lake
    table the second, its new name the third). ``takes``: whether the settings take the rows of a table.
    """

    rows_come: Callable[[SourceTable, SourceTable], bool] = _all_come
    has_rules: Callable[[SourceTable, SourceTable], bool] = _none_has
    in_place: Collection[tuple[int, str]] = ()
    lake: Collection[SourceTable] = ()
    rows_came: Callable[[Collection[SourceTable], SourceTable, SourceTable], bool] = _any_came
    takes: Callable[[SourceTable], bool] = _every_one
