"""A stitched table as a writer leaves it, on local disk: features and labels of requests, whole rows, hidden orders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.hudi.definition.bucket import bucket_ids, file_id
from pipeline.hudi.definition.config import TableConfig
from pipeline.hudi.definition.merging import WRITER_ORDER, ColumnGroup, Merging
from pipeline.hudi.definition.schema import RECORD_KEY_FIELD
from pipeline.hudi.files.file_group_write import FileGroupWrite, write_file_group
from pipeline.hudi.services.compaction import CompactionConfig, run
from pipeline.hudi.table.table import HudiTable
from pipeline.storage.local import LocalStorage

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

    ``rows`` is the model: what the table holds now, by key.
    """

    def __init__(self, path: Path, buckets: int = 2, *, stitched: bool = True) -> None:
        config = TableConfig(NAME, ("request_id",), ORDER, buckets)
        config = Merging("stitched", (FEATURES, LABELS)).on(config) if stitched else config
        self.path, self.buckets = path, buckets
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
        for key, change in changes.items():
            row = self.rows.setdefault(key, dict.fromkeys(SCHEMA.names) | {"request_id": key, ORDER: WRITER_ORDER})
            row.update({n: self._order if n.startswith(ORDER) and v is None else v for n, v in change.items()})
        return self.write([self.rows[key] for key in changes])

    def write(self, rows: Iterable[Row], deletes: Iterable[str] = (), deleted_at: int = WRITER_ORDER) -> str:
        """A commit of whole rows and of deletes; returns its completion time."""
        instant = self.table.begin()
        routed: dict[int, tuple[list[Row], list[str]]] = {}
        for row in rows:
            routed.setdefault(self._bucket(row["request_id"]), ([], []))[0].append(row)
        for key in deletes:
            routed.setdefault(self._bucket(key), ([], []))[1].append(key)
        context = self.table.write_context(instant)
        groups = [_group(bucket, *parts, deleted_at) for bucket, parts in sorted(routed.items())]
        return self.table.commit(instant, [write_file_group(self.table.storage, context, group) for group in groups])

    def compact(self) -> None:
        """Compact every file group that has log files."""
        run(self.table, CompactionConfig(after_commits=1, tombstone_retention_hours=0), lambda f, o: [f(x) for x in o])

    def _bucket(self, key: str) -> int:
        (bucket,) = bucket_ids(pa.array([key]), ("request_id",), self.buckets)
        return int(bucket)


def _group(bucket: int, rows: list[Row], deletes: list[str], deleted_at: int) -> FileGroupWrite:
    rows, deletes = sorted(rows, key=lambda row: str(row["request_id"])), sorted(deletes)
    upserts = pa.Table.from_pylist(rows, SCHEMA)
    upserts = upserts.add_column(0, RECORD_KEY_FIELD, upserts.column("request_id"))
    orders = pa.array([deleted_at] * len(deletes), pa.int64())
    deleted = pa.table({RECORD_KEY_FIELD: pa.array(deletes, pa.string()), ORDER: orders})
    return FileGroupWrite(
        "", bucket, file_id(NAME, "", bucket), upserts if rows else None, deleted if deletes else None
    )
