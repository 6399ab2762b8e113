"""A stitched table for tests: events of its groups as parcels hold them, and a tiny model of what its rows must be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from binlake.decode.changes import META_FIELDS, Op
from binlake.rows.upsert.route import GROUP, KEY, MOVED_AWAY
from hudilake.format.definition.merging import ColumnGroup, Merging, OnDelete

Values = dict[str, int | str | None]
TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "a": pa.int64(),
    "b": pa.string(),
    "c": pa.int64(),
    "d": pa.string(),
    "e": pa.int64(),
}
#: Columns of each group; the first one has what no other names.
COLUMNS = (("a", "b"), ("c",), ("d", "e"))


def merging(on_delete: Sequence[OnDelete] = ("columns", "columns", "columns")) -> Merging:
    """Three groups."""
    return Merging(
        "stitched",
        (
            ColumnGroup("main", None, on_delete[0]),
            ColumnGroup("clicks", COLUMNS[1], on_delete[1]),
            ColumnGroup("labels", COLUMNS[2], on_delete[2]),
        ),
    )


@dataclass(frozen=True)
class Event:
    """A change of one group: its values, None for a delete. ``moved``: a delete that a key change added."""

    group: int
    key: int
    order: int
    values: Values | None
    offset: int = 0
    moved: bool = False


def events_table(events: Sequence[Event]) -> pa.Table:
    """The events as the parcels of a stitched table hold them: columns of other groups are null."""
    operations = [MOVED_AWAY if e.moved else int(Op.DELETE if e.values is None else Op.UPSERT) for e in events]
    columns: dict[str, pa.Array] = {KEY: pa.array([str(e.key) for e in events], pa.string())}
    for name, kind in TYPES.items():
        columns[name] = pa.array([e.key if name == "id" else (e.values or {}).get(name) for e in events], kind)
    meta = {
        "__op": operations,
        "__order": [e.order for e in events],
        "__row": [0] * len(events),
        "__offset": [e.offset for e in events],
        "__partition": [e.group for e in events],
    }
    kinds = {f.name: f.type for f in META_FIELDS}
    columns |= {name: pa.array(values, kinds[name]) for name, values in meta.items()}
    columns[GROUP] = pa.array([e.group for e in events], pa.int8())
    return pa.table(columns)


@dataclass
class Model:
    """What the rows must be: the newest event of each key and group, as a dict."""

    merging: Merging
    newest: dict[tuple[int, int], Event] = field(default_factory=dict)

    def take(self, events: Iterable[Event]) -> None:
        """Events in the order of their delivery."""
        for event in events:
            known = self.newest.get((event.key, event.group))
            if known is None or event.order >= known.order:
                self.newest[event.key, event.group] = event

    def rows(self) -> list[Values]:
        """The rows that live, by key."""
        return [row for key in sorted({key for key, _ in self.newest}) if (row := self._row(key)) is not None]

    def _row(self, key: int) -> Values | None:
        row: Values = dict.fromkeys(TYPES) | {"id": key}
        known = False
        for number, group in enumerate(self.merging.groups):
            event = self.newest.get((key, number))
            if event is None:
                continue
            if event.values is None and group.on_delete == "row":
                return None
            if event.values is not None:
                known = True
                row |= {name: event.values.get(name) for name in COLUMNS[number]}
        return row if known else None
