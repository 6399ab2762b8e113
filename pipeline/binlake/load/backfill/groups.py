"""Which column group the columns of a backfill belong to, and what the table's merging is from then on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from binlake.load.backfill.request import DEFAULT_GROUP
from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.definition.merging import ColumnGroup, Merging

#: The group of all columns that a plain table had when it got its first group. The stream's delete deletes the row.
MAIN = ColumnGroup("main", None, "row")


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where the columns of a backfill belong.

    Args:
        merging: of the table from then on.
        group: the columns' group.
        whole: whether they are all columns of the group.
        new: whether the table does not have the columns yet.
    """

    merging: Merging
    group: ColumnGroup
    whole: bool
    new: bool


def assign(merging: Merging, present: Sequence[str], columns: Sequence[str], wanted: str | None) -> Assignment:
    """Where columns belong.

    Args:
        merging: of the table as it is.
        present: the table's value columns, without those of the record key and hidden ones.
        columns: of the backfill, lake names.
        wanted: the name of the group, as it was asked for; None for any.

    Raises ConfigError for columns of several groups and a group that has other columns, UnsupportedError for a table
    with another merge engine.
    """
    if (stitched := merging.stitched(MAIN)) is None:
        raise UnsupportedError(
            f"rows of this table are merged by {merging.engine}, so its columns have no order of their own",
            do_next="send the values through the stream",
        )
    owners = {column: _owner(stitched, present, column) for column in columns}
    groups = {owner.name: owner for owner in owners.values() if owner is not None}
    fresh = [column for column, owner in owners.items() if owner is None]
    if len(groups) + bool(fresh) > 1:
        raise ConfigError(
            f"the columns have several orders: {_owners_text(owners)}",
            do_next="run a backfill for each of these groups",
        )
    if not groups:
        return _with_new_group(stitched, tuple(columns), wanted)
    group = next(iter(groups.values()))
    if wanted not in (None, group.name):
        raise ConfigError(f"the columns belong to the group {group.name!r}", do_next="leave --group out", group=wanted)
    whole = set(stitched.columns_of(group, tuple(present))) <= set(columns)
    return Assignment(stitched, group, whole, new=not set(columns) <= set(present))


def _owner(merging: Merging, present: Sequence[str], column: str) -> ColumnGroup | None:
    """The group that a column belongs to; None for a column that the table does not have."""
    named = next((group for group in merging.groups if column in (group.columns or ())), None)
    if named is not None or column not in present:
        return named
    owner = next((group for group in merging.groups if column in merging.columns_of(group, (column,))), None)
    if owner is None:
        raise UnsupportedError(f"no column group has the column {column!r}", do_next="give another name to the column")
    return owner


def _with_new_group(merging: Merging, columns: tuple[str, ...], wanted: str | None) -> Assignment:
    names = {group.name for group in merging.groups}
    if wanted in names:
        raise ConfigError(
            f"the group {wanted!r} has other columns, and its rows have one order for all of them",
            do_next="leave --group out, or give the name of a new group",
        )
    free = (DEFAULT_GROUP if n == 1 else f"{DEFAULT_GROUP}_{n}" for n in count(1))
    group = ColumnGroup(wanted or next(name for name in free if name not in names), columns)
    return Assignment(replace(merging, groups=(*merging.groups, group)), group, whole=True, new=True)


def _owners_text(owners: dict[str, ColumnGroup | None]) -> str:
    return ", ".join(f"{column} ({owner.name if owner is not None else 'new'})" for column, owner in owners.items())
