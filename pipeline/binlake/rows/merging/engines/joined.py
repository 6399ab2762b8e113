"""Whether the merging that settings ask for fits that of a table."""

from __future__ import annotations

from dataclasses import replace

from hudilake.format.definition.merging import ColumnGroup, Merging


class DifferingError(ValueError):
    """The two cannot be one; the text says what differs."""


def joined(table: Merging, wanted: Merging) -> Merging:
    """The merging with the groups of both. Raises DifferingError.

    A plain table may become a stitched one: its columns are the first group's. A stitched table may get groups at the
    end and columns in a group. A writer may know fewer groups than the table, also none: it feeds the first one.
    """
    if wanted == table or (table.engine == "stitched" and not wanted.by_writer):
        return table
    if table.engine != wanted.engine and not (wanted.engine == "stitched" and not table.by_writer):
        raise DifferingError(f"its engine is {table.engine}, not {wanted.engine}")
    if (table.tracked, table.untracked) != (wanted.tracked, wanted.untracked):
        raise DifferingError(f"it tracks {_tracking(table)}, not {_tracking(wanted)}")
    if wanted.engine != "stitched":
        raise DifferingError(f"its functions are {dict(table.functions)}, not {dict(wanted.functions)}")
    if not table.groups:
        if wanted.groups[0].columns is not None:
            raise DifferingError(
                f"its own columns are in no group: {wanted.groups[0].name} must have all (columns: null)"
            )
        return wanted
    shared = [_joined_group(mine, other) for mine, other in zip(table.groups, wanted.groups, strict=False)]
    longer = max(table.groups, wanted.groups, key=len)
    return replace(table, groups=(*shared, *longer[len(shared) :]))


def _tracking(merging: Merging) -> str:
    if merging.tracked is not None:
        return ", ".join(merging.tracked)
    if merging.untracked is None:
        return "every event"
    return f"all columns but {', '.join(merging.untracked)}" if merging.untracked else "all columns"


def _joined_group(table: ColumnGroup, wanted: ColumnGroup) -> ColumnGroup:
    if table.name != wanted.name:
        raise DifferingError(f"its group {table.name} comes where the settings have {wanted.name}")
    if table.on_delete != wanted.on_delete:
        raise DifferingError(f"{table.name}: on_delete is {table.on_delete}, not {wanted.on_delete}")
    if (table.columns is None) != (wanted.columns is None):
        raise DifferingError(f"{table.name}: one of the two has all columns that no other group names")
    if table.columns is None or wanted.columns is None:
        return table
    return replace(table, columns=tuple(dict.fromkeys((*table.columns, *wanted.columns))))
