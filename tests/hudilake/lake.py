"""A small table for the tests, a model of it, and the two readers that must agree with the model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hudi import HudiTableBuilder

from hudilake.format.definition.bucket import bucket_ids, file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, WriteContext, WriteResult, with_markers
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import TableType
from hudilake.read.slice import read_table
from hudilake.storage.base import Storage
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable
from hudilake.write.group_writer import BaseWriter, GroupWriter, LogWriter

ORDER = "_binlake_order"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("qty", pa.int32()),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("day", pa.string()),
        pa.field(ORDER, pa.int64()),
    ]
)
Row = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One change of the model: an upsert, or a delete (name None), of a key in a partition at an ordering value."""

    id: int
    order: int
    name: str | None
    day: str = "d1"


@dataclass
class Model:
    """What the table must hold: per (day, id) the greatest order wins, of equal ones the later."""

    state: dict[tuple[str, int], Change] = field(default_factory=dict)

    def apply(self, changes: Iterable[Change]) -> None:
        """One commit."""
        for change in changes:
            known = self.state.get((change.day, change.id))
            if known is None or change.order >= known.order:
                self.state[(change.day, change.id)] = change

    def rows(self) -> list[Row]:
        """The live rows, sorted."""
        return sorted_rows(row_of(c) for c in self.state.values() if c.name is not None)


def row_of(change: Change) -> Row:
    """The row that a change writes; every column is a function of the change."""
    return {
        "id": change.id,
        "name": change.name,
        "qty": change.id % 7 if change.id % 5 else None,
        "price": (Decimal(change.id) / 100 - 5).quantize(Decimal("0.01")),
        "at": datetime(2024, 2, 29, tzinfo=UTC) + timedelta(microseconds=change.order),
        "day": change.day,
        ORDER: change.order,
    }


def sorted_rows(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Rows by partition and id."""
    return sorted((dict(r) for r in rows), key=lambda r: (r["day"], r["id"]))


def storage_at(path: Path) -> Storage:
    """Local disk without syncing: what these tests kill is the process, not the power."""
    return LocalStorage(path.absolute(), fsync=False)


def config(
    name: str = "t1", *, buckets: int = 2, partitioned: bool = True, table_type: TableType = "merge_on_read"
) -> TableConfig:
    """The configuration of the test table."""
    fields = ("day",) if partitioned else ()
    return TableConfig(name, ("id",), ORDER, buckets, partition_fields=fields, kind=TableKind(table_type))


def new_table(path: Path, metadata: MetadataConfig | None = None, **options: Any) -> HudiTable:  # noqa: ANN401
    """An empty table on local disk; ``options`` of ``config``."""
    return HudiTable.create(storage_at(path), config(**options), SCHEMA, metadata)


def groups(table: HudiTable, changes: Iterable[Change]) -> list[FileGroupWrite]:
    """Changes of distinct keys, routed to file groups."""
    routed: dict[tuple[str, int], list[Change]] = {}
    for change in changes:
        partition = f"day={change.day}" if table.config.partition_fields else ""
        (bucket,) = bucket_ids(pa.array([str(change.id)]), ("id",), table.config.bucket_count)
        routed.setdefault((partition, int(bucket)), []).append(change)
    return [_group(table, part, bucket, members) for (part, bucket), members in sorted(routed.items())]


def _group(table: HudiTable, partition: str, bucket: int, changes: list[Change]) -> FileGroupWrite:
    changes = sorted(changes, key=lambda c: str(c.id))
    upserts, deletes = [c for c in changes if c.name is not None], [c for c in changes if c.name is None]
    return FileGroupWrite(
        partition,
        file_id(table.config.name, partition, bucket),
        upserts=_keyed(upserts, pa.Table.from_pylist([row_of(c) for c in upserts], SCHEMA)) if upserts else None,
        deletes=_keyed(deletes, pa.table({ORDER: pa.array([c.order for c in deletes], pa.int64())}))
        if deletes
        else None,
    )


def _keyed(changes: list[Change], table: pa.Table) -> pa.Table:
    return table.add_column(0, RECORD_KEY_FIELD, pa.array([str(c.id) for c in changes]))


def write(
    table: HudiTable,
    instant: str,
    changes: Iterable[Change],
    storage: Storage | None = None,
    *,
    listed: bool = False,
) -> list[WriteResult]:
    """What the tasks of a commit do. ``listed``: the markers of at least four log files are a list, as the driver of a
    stream writes them."""
    context, mine, storage = table.write_context(instant), groups(table, changes), storage or table.storage
    if listed:
        context = with_markers(storage, context, [(g.partition_path, g.file_id) for g in mine])
        assert context.has_markers
    writer = writer_of(table, context)
    return [result for g in mine for result in writer.write(storage, g)]


def writer_of(table: HudiTable, context: WriteContext) -> GroupWriter:
    """How the table's type writes."""
    if not table.config.kind.copies:
        return LogWriter(context)
    return BaseWriter(context, {s.file_id: s.base_file for s in table.file_slices() if s.base_file is not None})


def commit(table: HudiTable, changes: Iterable[Change], extra: Mapping[str, str] | None = None) -> str:
    """One commit; returns its requested time."""
    instant = table.begin()
    table.commit(instant, write(table, instant, changes), extra)
    return instant


def upserts(ids: Iterable[int], order: int, name: str = "n", day: str = "d1") -> list[Change]:
    """Upserts of some ids at one ordering value."""
    return [Change(i, order, f"{name}{i}", day) for i in ids]


def deletes(ids: Iterable[int], order: int, day: str = "d1") -> list[Change]:
    """Deletes of some ids at one ordering value."""
    return [Change(i, order, None, day) for i in ids]


def ours(path: Path, columns: list[str] | None = None, as_of: str | None = None) -> list[Row]:
    """All rows through our own reader."""
    storage = storage_at(path)
    return sorted_rows(r for t in read_table(storage, columns or SCHEMA.names, as_of) for r in t.to_pylist())


def rs(path: Path, columns: list[str] | None = None) -> list[Row]:
    """All rows through hudi-rs."""
    batches = HudiTableBuilder.from_base_uri(str(path)).build().read()
    rows = (r for batch in batches for r in pa.table(batch).select(columns or SCHEMA.names).to_pylist())
    return sorted_rows(rows)


def check(path: Path, model: Model) -> None:
    """Both readers agree with the model."""
    expected = model.rows()
    assert ours(path) == expected
    assert rs(path) == expected


def tree(path: Path) -> list[str]:
    """Every file of the table, relative and sorted."""
    return sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.is_file())


def data_files(path: Path) -> list[str]:
    """Every base and log file, relative and sorted."""
    return [p for p in tree(path) if not p.startswith(".hoodie/") and not p.endswith(".hoodie_partition_metadata")]


def write_history(path: Path, completion_times: Mapping[str, str], bodies: Mapping[str, bytes] | None = None) -> None:
    """An archived timeline that holds delta commits by requested time."""
    history = path / ".hoodie/timeline/history"
    history.mkdir(parents=True, exist_ok=True)
    rows = {
        "instantTime": list(completion_times),
        "completionTime": list(completion_times.values()),
        "action": ["deltacommit"] * len(completion_times),
        "metadata": [(bodies or {}).get(time, b"") for time in completion_times],
    }
    pq.write_table(pa.table(rows), history / "archived.parquet")
    (history / "manifest_1").write_text(json.dumps({"files": [{"fileName": "archived.parquet", "fileLen": 1}]}))
    (history / "_version_").write_text("1")
