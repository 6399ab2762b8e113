"""How a table's rows come together from events, by the settings.

It stands alone: targets, tables, changes of schemas and commands all ask for it.
"""

from __future__ import annotations

from binlake.settings import TableRules
from hudilake.format.definition.column_names import lake_name
from hudilake.format.definition.merging import ColumnGroup, Merging


def merging_of(rules: TableRules) -> Merging:
    """How the table's rows come together from events."""
    if not rules.groups:
        functions = tuple((lake_name(column), function) for column, function in rules.merge.functions)
        return Merging(rules.merge.engine, functions=functions)
    return Merging(
        "stitched",
        tuple(
            ColumnGroup(
                group.name,
                None if group.columns is None else tuple(lake_name(column) for column, _ in group.columns),
                group.on_delete,
            )
            for group in rules.groups
        ),
    )
