"""How the rows of a table come together from events, where the newest event does not simply win.

Such a table is *merged by its writer*: the writer looks up what a row is, works out what it becomes, and writes that.
Its rows, partial rows and deletes all have the ordering value ``WRITER_ORDER``. Readers apply log entries of equal
ordering values in the order of the log, so they show what the writer wrote last. The property ``binlake.merging`` in
``hoodie.properties`` says how the writer merges; a table without it is merged by its readers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, Literal, get_args

from hudilake.errors import CorruptDataError
from hudilake.format.definition.properties import PROPERTIES_PATH

#: The ordering value of everything that is written to a table merged by its writer. It is above the order of every
#: event: an event's order has the epoch in its highest 11 of 63 bits, and epochs are small.
WRITER_ORDER: Final = 1 << 62
MERGING_PROPERTY: Final = "binlake.merging"
_GROUP_ORDER = "_binlake_order_"
#: The hidden BINARY column with what an engine must remember of a row (``binlake.rows.merging.engines.state``).
STATE_FIELD: Final = "_binlake_state"

Engine = Literal["newest", "stitched", "partial_update", "first_row", "aggregate", "scd2", "bitemporal", "changes"]
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
        tracked: of a table of versions the columns, in lower case, whose changes make one; None for all columns but
            those of ``untracked``.
        untracked: those whose changes make none. Where both are None every event makes a version.
    """

    engine: Engine = "newest"
    groups: tuple[ColumnGroup, ...] = ()
    functions: tuple[tuple[str, Function], ...] = ()
    tracked: tuple[str, ...] | None = None
    untracked: tuple[str, ...] | None = None

    @property
    def by_writer(self) -> bool:
        """Whether the writer merges; otherwise readers do, by the events' orders."""
        return self.engine != "newest"

    @property
    def counts_once(self) -> bool:
        """Whether the writer keeps how far it has counted facts, and takes what is below for counted."""
        return self.engine in ("aggregate", "first_row")

    @property
    def keeps_versions(self) -> bool:
        """Whether a row is a version of a row of the source, what the lake knew of one, or a change of one."""
        return self.place_fields > 0

    @property
    def names_transactions(self) -> bool:
        """Whether a row names the transaction of its change."""
        return self.engine == "changes"

    @property
    def place_fields(self) -> int:
        """How many fields at the end of the record key name the version or the change."""
        return {"scd2": 1, "bitemporal": 2, "changes": 2}.get(self.engine, 0)

    @property
    def tracks(self) -> bool:
        """Whether changes of some columns make versions, and not every event does."""
        return self.tracked is not None or self.untracked is not None

    def is_tracked(self, column: str) -> bool:
        """Whether a change of this column makes a version."""
        if self.tracked is not None:
            return column.lower() in self.tracked
        return column.lower() not in (self.untracked or ())

    def source_key(self, key: tuple[str, ...]) -> tuple[str, ...]:
        """The fields of a record key that name the row of the source."""
        return key[: len(key) - self.place_fields]

    @property
    def state_fields(self) -> tuple[str, ...]:
        """The BINARY columns that the engine adds to the table."""
        return (STATE_FIELD,) if self.engine in ("partial_update", "aggregate") else ()

    def refusal(self, text: str) -> str | None:
        """Why a table that its writer merges is refused: ``text`` with the engine for {}; None for any other table."""
        return text.format(self.engine) if self.by_writer else None

    def stitched(self, first: ColumnGroup) -> Merging | None:
        """The merging with an order for each column group: itself if it has groups, ``first`` where the newest event is
        the row; None where columns have no order of their own."""
        if self.groups:
            return self
        return None if self.by_writer else Merging("stitched", (first,))

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

    def to_json(self) -> str | None:
        """The property's text; None if readers merge: they need no property."""
        if not self.by_writer:
            return None
        groups = [
            {"name": g.name, "columns": None if g.columns is None else list(g.columns), "on_delete": g.on_delete}
            for g in self.groups
        ]
        body: dict[str, object] = {"engine": self.engine, "groups": groups, "functions": dict(self.functions)}
        body |= {} if self.tracked is None else {"tracked": list(self.tracked)}
        body |= {} if self.untracked is None else {"untracked": list(self.untracked)}
        return json.dumps(body, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str, table: str) -> Merging:
        """What the property of a table says. Raises CorruptDataError."""
        try:
            body = json.loads(text)
            groups = tuple(
                ColumnGroup(g["name"], None if g["columns"] is None else tuple(g["columns"]), g["on_delete"])
                for g in body["groups"]
            )
            tracked, untracked = (None if body.get(n) is None else tuple(body[n]) for n in ("tracked", "untracked"))
            merging = cls(body["engine"], groups, tuple(body["functions"].items()), tracked, untracked)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise _unreadable(text, table) from error
        if merging.engine not in get_args(Engine) or any(f not in get_args(Function) for _, f in merging.functions):
            raise _unreadable(text, table)
        return merging


#: Of every table whose readers merge: the newest event of a key wins.
NEWEST: Final = Merging()


def _unreadable(text: str, table: str) -> CorruptDataError:
    return CorruptDataError(
        f"{MERGING_PROPERTY} cannot be read: {text[:200]!r}",
        do_next="restore hoodie.properties from a copy, or use the binlake version that wrote it",
        table=table,
        path=PROPERTIES_PATH,
    )
