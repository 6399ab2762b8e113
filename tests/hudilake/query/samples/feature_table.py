"""A stitched table as a writer leaves it, on local disk: features and labels of requests, whole rows, hidden orders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudilake.format.definition.bucket import bucket_ids, file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.merging import WRITER_ORDER, ColumnGroup, Merging
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.services.compaction import CompactionConfig, run
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable

NAME, ORDER = "impressions", "_binlake_order"
FEATURES = ColumnGroup("features", None, "row")
LABELS = ColumnGroup("labels", ("clicked",))
SCHEMA = pa.schema(
    [
        pa.field("request_id", pa.string()),
        pa.field("age", pa.int32()),
        pa.field("price", pa.float64()),
        pa.field("clicked", pa.int32()),
        pa.field(ORDER, pa.int64()),
        pa.field(FEATURES.order_field, pa.int64()),
        pa.field(LABELS.order_field, pa.int64()),
    ]
)
Row = dict[str, Any]


class FeatureTable:
    """Works out what rows become, as the stitched writer does, and commits them.

    ``rows`` is the model: what the table holds now, by key. ``partial``: changes of rows that live are written as
    partial rows.
    """

    def __init__(self, path: Path, buckets: int = 2, *, stitched: bool = True, partial: bool = False) -> None:
        config = TableConfig(NAME, ("request_id",), ORDER, buckets)
        config = config.with_merging(Merging("stitched", (FEATURES, LABELS))) if stitched else config
        self.path, self.buckets, self.partial = path, buckets, partial
        self.table = HudiTable.create(LocalStorage(path.absolute(), fsync=False), config, SCHEMA)
        self.rows: dict[str, Row] = {}
        self._order = 0

    def features(self, *keys: str, age: int | None = 1) -> str:
        """A commit of the first group; returns its completion time."""
        return self._commit({key: {"age": age, "price": self._order / 4, FEATURES.order_field: None} for key in keys})

    def labels(self, *keys: str, clicked: int | None = 1) -> str:
        """A commit of the second group."""
        return self._commit({key: {"clicked": clicked, LABELS.order_field: None} for key in keys})

    def unlabel(self, *keys: str) -> str:
        """A commit that deletes the second group's events."""
        return self._commit({key: {"clicked": None, LABELS.order_field: -self._order - 2} for key in keys})

    def both(self, features: Iterable[str], labels: Iterable[str]) -> str:
        """A commit of both groups."""
        changes: dict[str, Row] = {key: {"age": 2, "price": 0.5, FEATURES.order_field: None} for key in features}
        for key in labels:
            changes.setdefault(key, {}).update({"clicked": 1, LABELS.order_field: None})
        return self._commit(changes)

    def delete(self, *keys: str) -> str:
        """A commit that deletes rows."""
        for key in keys:
            self.rows.pop(key, None)
        return self.write([], keys)

    def _commit(self, changes: Mapping[str, Row]) -> str:
        self._order += 1
        known, orders = set(self.rows) if self.partial else set(), {}
        for key, change in changes.items():
            orders[key] = {n: self._order if n.startswith(ORDER) and v is None else v for n, v in change.items()}
            row = self.rows.setdefault(key, dict.fromkeys(SCHEMA.names) | {"request_id": key, ORDER: WRITER_ORDER})
            row.update(orders[key])
        whole = [self.rows[key] for key in changes if key not in known]
        return self.write(whole, partials={key: orders[key] for key in changes if key in known})

    def write(self, rows: Iterable[Row], deletes: Iterable[str] = (), partials: Mapping[str, Row] | None = None) -> str:
        """A commit of whole rows, deletes and changed columns; returns its completion time."""
        instant = self.table.begin()
        routed: dict[int, _Routed] = {}
        for row in rows:
            routed.setdefault(self._bucket(row["request_id"]), _Routed()).rows.append(row)
        for key in deletes:
            routed.setdefault(self._bucket(key), _Routed()).deletes.append(key)
        for key, change in (partials or {}).items():
            routed.setdefault(self._bucket(key), _Routed()).partials[key] = change
        context = self.table.write_context(instant)
        groups = [part.group(bucket) for bucket, part in sorted(routed.items())]
        results = [write_file_group(self.table.storage, context, group) for group in groups]
        return self.table.commit(instant, results)

    def compact(self) -> None:
        """Compact every file group that has log files."""
        run(self.table, CompactionConfig(after_commits=1, tombstone_retention_hours=0), lambda f, o: [f(x) for x in o])

    def _bucket(self, key: str) -> int:
        (bucket,) = bucket_ids(pa.array([key]), ("request_id",), self.buckets)
        return int(bucket)


@dataclass
class _Routed:
    """What a commit does to a file group."""

    rows: list[Row] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    partials: dict[str, Row] = field(default_factory=dict)

    def group(self, bucket: int) -> FileGroupWrite:
        """The write of the file group."""
        upserts = _keyed(self.rows, SCHEMA) if self.rows else None
        deletes = None
        if self.deletes:
            keys = sorted(self.deletes)
            deletes = pa.table({RECORD_KEY_FIELD: keys, ORDER: pa.array([WRITER_ORDER] * len(keys), pa.int64())})
        return FileGroupWrite("", file_id(NAME, "", bucket), upserts, deletes, partials=self._partials())

    def _partials(self) -> tuple[pa.Table, ...]:
        """A table for each set of columns."""
        found: dict[tuple[str, ...], list[Row]] = {}
        for key, change in self.partials.items():
            found.setdefault(tuple(change), []).append(change | {"request_id": key, ORDER: WRITER_ORDER})
        schemas = {names: [SCHEMA.field(n) for n in SCHEMA.names if n in (*names, ORDER)] for names in found}
        key = SCHEMA.field("request_id")
        return tuple(
            _keyed(rows, pa.schema([key, *schemas[names]])).drop_columns(["request_id"])
            for names, rows in found.items()
        )


def _keyed(rows: list[Row], schema: pa.Schema) -> pa.Table:
    table = pa.Table.from_pylist(sorted(rows, key=lambda row: str(row["request_id"])), schema)
    return table.add_column(0, RECORD_KEY_FIELD, table.column("request_id"))
