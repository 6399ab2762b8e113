"""Small Hudi tables of several layouts, and what HiveSync makes of them in a real Hive Metastore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from hudilake.format.definition.bucket import file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.format.files.file_group_write import FileGroupWrite
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import TableType
from hudilake.table.table import HudiTable
from tests.hudilake import lake

_ROWS = lake.upserts([1, 2, 3], 1)
#: Columns of every type.
WIDE: Final = pa.schema(
    [
        *lake.SCHEMA,
        pa.field("b", pa.bool_()),
        pa.field("d", pa.date32()),
        pa.field("f", pa.float32()),
        pa.field("g", pa.float64()),
        pa.field("bin", pa.binary()),
        pa.field("tl", pa.timestamp("us")),
        pa.field("tms", pa.timestamp("ms", tz="UTC")),
        pa.field("tm", pa.time64("us")),
        pa.field("req", pa.int64(), nullable=False),
        pa.field("Mixed", pa.string()),
        pa.field("i8", pa.int32()),
    ]
)
_WIDE_VALUES: Final[Mapping[str, Any]] = {
    "b": True,
    "d": date(2024, 1, 2),
    "f": 1.5,
    "g": 2.5,
    "bin": b"x",
    "tl": datetime(2024, 1, 2),  # noqa: DTZ001 - a local time
    "tms": datetime(2024, 1, 2, tzinfo=UTC),
    "tm": time(1, 2),
    "req": 1,
    "Mixed": "a",
    "i8": 2,
}


def made(
    path: Path,
    *,
    fields: tuple[str, ...] = ("day",),
    partitions: tuple[str, ...] = (),
    kind: TableType = "merge_on_read",
    hive_style: bool = True,
    schema: pa.Schema = lake.SCHEMA,
) -> HudiTable:
    """A table with three rows in each of some partitions, a commit each."""
    config = TableConfig(
        path.name, ("id",), lake.ORDER, 2, partition_fields=fields, hive_style=hive_style, kind=TableKind(kind)
    )
    table = HudiTable.create(lake.storage_at(path), config, schema, MetadataConfig())
    for partition in partitions:
        add(table, partition)
    return table


def add(table: HudiTable, partition: str) -> str:
    """Three rows to the first file group of a partition; returns the instant."""
    instant = table.begin()
    rows = [lake.row_of(change) | dict(_WIDE_VALUES) for change in _ROWS]
    columns = pa.Table.from_pylist(rows, table.schema)
    keyed = columns.add_column(0, "_hoodie_record_key", pa.array([str(change.id) for change in _ROWS]))
    write = FileGroupWrite(partition, file_id(table.config.name, partition, 0), upserts=keyed)
    table.commit(instant, lake.writer_of(table, table.write_context(instant)).write(table.storage, write))
    return instant


#: The tables of ``golden/hive_sync.json`` by name; ``mor_date`` was synced with ``--support-timestamp``.
TABLES: Final[Mapping[str, Callable[[Path], HudiTable]]] = {
    "mor_flat": lambda at: made(at, fields=(), partitions=("",)),
    "mor_hive": lambda at: made(at, partitions=("day=d1", "day=d 2%2Fx")),
    "cow_plain": lambda at: made(at, kind="copy_on_write", hive_style=False, partitions=("d1", "d2")),
    "cow_wide": lambda at: made(at, kind="copy_on_write", fields=(), partitions=("",), schema=WIDE),
    "mor_two": lambda at: made(
        at, fields=("day", "qty"), partitions=("day=d1/qty=5", "day=d1/qty=__HIVE_DEFAULT_PARTITION__")
    ),
    "mor_empty": made,
    "mor_date": lambda at: made(at, fields=("d",), partitions=("d=2024-01-02",), schema=WIDE),
}
