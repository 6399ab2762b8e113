"""Events as parcels hold them, and rows that a merger has written, kept in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from binlake.rows.merging.states import KeyStates, Merger, MergeResult
from binlake.rows.upsert.merge import Place
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.merging import STATE_FIELD

PLACE: Place = ("", 0)
ORDERS = [
    ("__op", pa.int8()),
    ("__order", pa.int64()),
    ("__row", pa.int32()),
    ("__offset", pa.int64()),
    ("__partition", pa.int32()),
]


def parcel(events: Sequence[Mapping[str, Any]], columns: Mapping[str, pa.DataType], **more: pa.DataType) -> pa.Table:
    """Events as a table; what an event does not say is null, or 0 in ORDER_COLUMNS."""
    schema = pa.schema([(KEY, pa.string()), *columns.items(), *ORDERS, *more.items()])
    zeros = {name: 0 for name, _ in ORDERS}
    return pa.Table.from_pylist([zeros | dict(event) for event in events], schema=schema)


@dataclass
class Rows:
    """The rows of one file group and the tombstones of deleted ones: RowStates without a table.

    ``schema``: the table's columns, hidden ones among them.
    """

    schema: pa.Schema
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    tombstones: dict[str, dict[str, Any]] = field(default_factory=dict)

    def of(self, place: Place, file_id: str, keys: pa.Array, columns: Sequence[str]) -> KeyStates:
        """See RowStates."""
        names = keys.to_pylist()
        assert len(set(names)) == len(names)
        found = [self.rows.get(key) or self.tombstones.get(key) or {} for key in names]
        table = pa.Table.from_pylist(
            [{c: row.get(c) for c in columns} for row in found],
            schema=pa.schema([self.schema.field(c) for c in columns]),
        )
        return KeyStates(np.array([key in self.rows for key in names], dtype=np.bool_), table)

    def write(self, merged: MergeResult) -> None:
        """Take in what a merger writes."""
        write = merged.write
        if write.upserts is not None:
            assert write.upserts.column(KEY).to_pylist() == sorted(write.upserts.column(KEY).to_pylist())
            assert set(self.schema.names) <= set(write.upserts.column_names)
            for row in write.upserts.to_pylist():
                self.rows[row.pop(KEY)] = row
        if write.deletes is not None:
            for key in write.deletes.column(KEY).to_pylist():
                self.rows.pop(key, None)
        for row in merged.tombstones.to_pylist() if merged.tombstones is not None else ():
            self.tombstones[row.pop(KEY)] = row

    def merge(self, merger: Merger, events: pa.Table) -> MergeResult:
        """Merge events and take the result in."""
        merged = merger.merge(PLACE, "id", events)
        self.write(merged)
        return merged

    def values(self) -> dict[str, dict[str, Any]]:
        """key -> its columns, hidden ones left out."""
        return {
            key: {n: v for n, v in row.items() if n not in (ORDER_FIELD, STATE_FIELD) and "_order_" not in n}
            for key, row in self.rows.items()
        }
