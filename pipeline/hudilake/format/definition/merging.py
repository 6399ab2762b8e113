"""How the rows of a table come together from events, where the newest event does not simply win.

Such a table is *merged by its writer*: the writer looks up what a row is, works out what it becomes, and writes that.
Its rows, partial rows and deletes all have the ordering value ``WRITER_ORDER``. Readers apply log entries of equal
ordering values in the order of the log, so they show what the writer wrote last. The property ``binlake.merging`` in
``hoodie.properties`` says how the writer merges; a table without it is merged by its readers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from hudilake.errors import CorruptDataError
from hudilake.format.definition.config import PROPERTIES_PATH, TableConfig

#: The ordering value of everything that is written to a table merged by its writer. It is above the order of every
#: event: an event's order has the epoch in its highest 11 of 63 bits, and epochs are small.
WRITER_ORDER: Final = 1 << 62
MERGING_PROPERTY: Final = "binlake.merging"
_GROUP_ORDER = "_binlake_order_"
#: The hidden BINARY column with what an engine must remember of a row (``binlake.rows.merging.engines.state``).
STATE_FIELD: Final = "_binlake_state"

Engine = Literal["newest", "stitched", "partial_update", "first_row", "aggregate"]
OnDelete = Literal["columns", "row"]
Function = Literal["sum", "min", "max", "count", "last_non_null", "collect"]


@dataclass(frozen=True, slots=True)
class ColumnGroup:
    """Columns of a table that have one source and one order.

    Args:
        name: of the group, a part of a column name.
        columns: lake names; None for all columns that no other group names. The record key belongs to no group.
        on_delete: whether a delete of the group makes its columns null or deletes the row.
    """

    name: str
    columns: tuple[str, ...] | None = None
    on_delete: OnDelete = "columns"

    @property
    def order_field(self) -> str:
        """The hidden LONG column with the group's order in a row: null if the group never knew the row, v >= 0 for the
        order of its newest event, v < 0 for its delete at the order ``-v - 1``."""
        return _GROUP_ORDER + self.name


#: The group of all columns, in tables whose engine keeps one order of the row. ``Merging.groups`` does not list it.
ROW_GROUP: Final = ColumnGroup("row", None, "row")


@dataclass(frozen=True, slots=True)
class Merging:
    """How a table's writer merges.

    Args:
        engine: the rule.
        groups: of a stitched table, in a fixed order: rows name a group by its index. New groups come last.
        functions: of an aggregated table, by column.
    """

    engine: Engine = "newest"
    groups: tuple[ColumnGroup, ...] = ()
    functions: tuple[tuple[str, Function], ...] = ()

    @property
    def by_writer(self) -> bool:
        """Whether the writer merges; otherwise readers do, by the events' orders."""
        return self.engine != "newest"

    @property
    def keeps_state(self) -> bool:
        """Whether the table has the column STATE_FIELD."""
        return self.engine in ("partial_update", "aggregate")

    @property
    def hidden_fields(self) -> tuple[str, ...]:
        """The LONG columns that the groups, or the engine, add to the table."""
        if self.engine in ("partial_update", "first_row"):
            return (ROW_GROUP.order_field,)
        return tuple(group.order_field for group in self.groups)

    def columns_of(self, group: ColumnGroup, columns: tuple[str, ...]) -> tuple[str, ...]:
        """The group's columns among ``columns``, the table's value columns without key and hidden ones, in their
        order."""
        if group.columns is not None:
            return tuple(name for name in columns if name in group.columns)
        taken = {name for other in self.groups for name in other.columns or ()}
        return tuple(name for name in columns if name not in taken)

    def group(self, name: str) -> ColumnGroup | None:
        """The group of a name."""
        return next((group for group in self.groups if group.name == name), None)

    @classmethod
    def of(cls, config: TableConfig) -> Merging:
        """What the table's properties say. Raises CorruptDataError for a property that binlake cannot read."""
        text = config.extra.get(MERGING_PROPERTY)
        return cls() if text is None else _parsed(text, config.name)

    def on(self, config: TableConfig) -> TableConfig:
        """The configuration of the same table with this merging."""
        extra = {key: value for key, value in config.extra.items() if key != MERGING_PROPERTY}
        if self.by_writer:
            extra[MERGING_PROPERTY] = self.to_json()
        return replace(config, extra=extra)

    def to_json(self) -> str:
        """The property's text."""
        groups = [
            {"name": g.name, "columns": None if g.columns is None else list(g.columns), "on_delete": g.on_delete}
            for g in self.groups
        ]
        body: Mapping[str, object] = {"engine": self.engine, "groups": groups, "functions": dict(self.functions)}
        return json.dumps(body, separators=(",", ":"))


def _parsed(text: str, table: str) -> Merging:
    try:
        body = json.loads(text)
        groups = tuple(
            ColumnGroup(g["name"], None if g["columns"] is None else tuple(g["columns"]), g["on_delete"])
            for g in body["groups"]
        )
        merging = Merging(body["engine"], groups, tuple(body["functions"].items()))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _unreadable(text, table) from error
    if merging.engine not in get_args(Engine) or any(f not in get_args(Function) for _, f in merging.functions):
        raise _unreadable(text, table)
    return merging


def _unreadable(text: str, table: str) -> CorruptDataError:
    return CorruptDataError(
        f"{MERGING_PROPERTY} cannot be read: {text[:200]!r}",
        do_next="restore hoodie.properties from a copy, or use the binlake version that wrote it",
        table=table,
        path=PROPERTIES_PATH,
    )
