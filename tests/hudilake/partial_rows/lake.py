"""A table whose writer gives every row, partial row and delete one ordering value, with a dict as its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudilake.format.definition.bucket import bucket_ids, file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.merging import WRITER_ORDER, ColumnGroup, Merging
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, WriteResult, write_file_group
from hudilake.format.files.first_write import write_new_file_group
from hudilake.metadata.config import MetadataConfig
from hudilake.table.table import HudiTable
from tests.hudilake.lake import storage_at

ORDER = "_binlake_order"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("a", pa.int64()),
        pa.field("b", pa.string()),
        pa.field("c", pa.decimal128(10, 2)),
        pa.field("d", pa.float64()),
        pa.field("day", pa.string()),
        pa.field(ORDER, pa.int64()),
    ]
)
VALUES = ("a", "b", "c", "d")
COLUMNS = ("id", *VALUES, "day")
#: So that compactions restate no deletes.
MERGING = Merging("stitched", (ColumnGroup("one", ("a", "b")), ColumnGroup("two", ("c", "d"))))

Cells = Mapping[str, Any]


@dataclass(frozen=True)
class Full:
    """A whole row: columns that ``cells`` lacks are null."""

    cells: Cells
    order: int = WRITER_ORDER


@dataclass(frozen=True)
class Part:
    """Some columns of a row that lives."""

    cells: Cells


@dataclass(frozen=True)
class Gone:
    """A delete."""


Event = Full | Part | Gone
Events = Mapping[int, Event]


def cells(number: int, *names: str) -> dict[str, Any]:
    """Values of some columns, all of them if none is named; each is a function of the number and the column."""
    made = {"a": number * 7, "b": f"b{number}", "c": Decimal(number).scaleb(-2), "d": number / 8}
    return {name: made[name] for name in names or VALUES}


@dataclass
class Lake:
    """The table and its model: the rows by id. ``pictures``: the rows as of each commit, in the order of the log."""

    path: Path
    table: HudiTable
    model: dict[int, dict[str, Any]] = field(default_factory=dict)
    pictures: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def new(cls, path: Path, *, indexed: bool, buckets: int = 1, partitioned: bool = True) -> Lake:
        """An empty table; ``indexed``: with a metadata table."""
        fields = ("day",) if partitioned else ()
        config = TableConfig("t1", ("id",), ORDER, buckets, partition_fields=fields).with_merging(MERGING)
        return cls(path, HudiTable.create(storage_at(path), config, SCHEMA, MetadataConfig() if indexed else None))

    def opened(self) -> Lake:
        """The same after another writer has written."""
        self.table = HudiTable.open(storage_at(self.path))
        return self

    def rows(self) -> list[dict[str, Any]]:
        """The rows that live."""
        return [{"id": key, **values, "day": day_of(key)} for key, values in sorted(self.model.items())]

    def commit(self, events: Events, *, base: bool = False) -> str:
        """One commit; ``base``: as the base files of new file groups."""
        instant = self.table.begin()
        results = self.write(instant, events, base=base)
        self.table.commit(instant, results)
        self.apply(events)
        self.pictures[instant] = self.rows()
        return instant

    def write(self, instant: str, events: Events, *, base: bool = False) -> list[WriteResult]:
        """The files of a commit."""
        context, out = self.table.write_context(instant), list[WriteResult]()
        for group in self.groups(events):
            if base:
                from dataclasses import replace

                out += write_new_file_group(self.table.storage, replace(context, base_from_rows=1), group)
            else:
                out.append(write_file_group(self.table.storage, context, group))
        return out

    def groups(self, events: Events) -> list[FileGroupWrite]:
        """The events by file group."""
        keys = sorted(events, key=str)
        config = self.table.config
        buckets = bucket_ids(pa.array([str(key) for key in keys]), ("id",), config.bucket_count)
        routed: dict[tuple[str, int], dict[int, Event]] = {}
        for key, bucket in zip(keys, buckets, strict=True):
            partition = f"day={day_of(key)}" if config.partition_fields else ""
            routed.setdefault((partition, int(bucket)), {})[key] = events[key]
        return [_group(config.name, *place, mine) for place, mine in sorted(routed.items())]

    def apply(self, events: Events) -> None:
        """To the model."""
        for key, event in events.items():
            if isinstance(event, Gone):
                self.model.pop(key, None)
            elif isinstance(event, Part):
                self.model[key] = {**self.model[key], **event.cells}
            else:
                self.model[key] = {**dict.fromkeys(VALUES), **event.cells}


def day_of(key: int) -> str:
    """The partition of a key."""
    return "d1" if key % 3 else "d2"


def _group(name: str, partition: str, bucket: int, events: Mapping[int, Event]) -> FileGroupWrite:
    whole = {key: event for key, event in events.items() if isinstance(event, Full)}
    gone = [key for key, event in events.items() if isinstance(event, Gone)]
    parts: dict[tuple[str, ...], dict[int, Part]] = {}
    for key, event in events.items():
        if isinstance(event, Part):
            parts.setdefault(tuple(sorted(event.cells)), {})[key] = event
    return FileGroupWrite(
        partition,
        file_id(name, partition, bucket),
        upserts=_whole_rows(whole) if whole else None,
        partials=tuple(_partial_rows(names, mine) for names, mine in parts.items()),
        deletes=_keyed(gone, {ORDER: pa.array([WRITER_ORDER] * len(gone), pa.int64())}) if gone else None,
    )


def _whole_rows(events: Mapping[int, Full]) -> pa.Table:
    rows = [{"id": key, **event.cells, "day": day_of(key), ORDER: event.order} for key, event in events.items()]
    return pa.Table.from_pylist(rows, SCHEMA).add_column(0, RECORD_KEY_FIELD, pa.array([str(key) for key in events]))


def _partial_rows(names: tuple[str, ...], events: Mapping[int, Part]) -> pa.Table:
    columns = {
        name: pa.array([event.cells[name] for event in events.values()], SCHEMA.field(name).type) for name in names
    }
    return _keyed(list(events), {**columns, ORDER: pa.array([WRITER_ORDER] * len(events), pa.int64())})


def _keyed(keys: list[int], columns: Mapping[str, pa.Array]) -> pa.Table:
    return pa.table({RECORD_KEY_FIELD: pa.array([str(key) for key in keys]), **columns})
