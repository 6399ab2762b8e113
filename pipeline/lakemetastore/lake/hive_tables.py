"""The Hive tables of a Hudi table, field by field as Hudi's HiveSync 1.2.0 makes them (measured beside Hive Metastore
3.1.3; ``tests/data/golden/hive_sync.json``).

A merge-on-read table ``t`` has three: ``t`` and ``t_rt`` with all changes, ``t_ro`` with base files alone. A
copy-on-write table has one. ``spark.sql.sources.provider`` is always set: without it Spark reads base files only and
says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from hudilake.format.definition.config import TableConfig
from hudilake.read.partition_values import path_values, plain_layout
from lakemetastore.lake.avro_types import AvroColumn, table_columns
from lakemetastore.lake.opened import OpenedTable
from lakemetastore.model import Column, Partition, SerDe, Storage, Table

READ_OPTIMIZED, REALTIME = "_ro", "_rt"
EXTERNAL = "EXTERNAL_TABLE"
#: Spark cuts a table's schema into parameters of at most so many characters.
SCHEMA_PART = 4000
QUERY_AS_RO = "hoodie.query.as.ro.table"
LAST_COMMIT, LAST_COMPLETION = "last_commit_time_sync", "last_commit_completion_time_sync"
_BASE_INPUT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
_REALTIME_INPUT = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
_OUTPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_SCHEMA = "spark.sql.sources.schema"


@dataclass(frozen=True, slots=True)
class HiveTable:
    """One of the Hive tables of a Hudi table, with its partitions."""

    table: Table
    partitions: tuple[Partition, ...]


@dataclass(frozen=True)
class HiveTables:
    """Makes the Hive tables of a Hudi table.

    Args:
        opened: the Hudi table.
        database: in lower case.
        name: in lower case.
        timestamps: whether timestamps are of type ``timestamp`` in Hive; else ``bigint``, HiveSync's default. Spark
            takes its types from ``spark.sql.sources.schema``.
    """

    opened: OpenedTable
    database: str
    name: str
    timestamps: bool = False

    def tables(self, paths: Iterable[str]) -> Iterator[HiveTable]:
        """The Hive tables, ``name`` first. ``paths``: the partition paths of the Hudi table.

        Raises UnsupportedError for a table without a schema, CorruptDataError, StorageError.
        """
        columns = table_columns(self.opened.schema_text(), with_meta=True)
        values = partition_values(self.opened.config, sorted(paths))
        if self.opened.config.kind.copies:
            yield self._table(self.name, columns, values, as_ro=False, realtime=False)
            return
        yield self._table(self.name, columns, values, as_ro=False, realtime=True)
        yield self._table(self.name + READ_OPTIMIZED, columns, values, as_ro=True, realtime=False)
        yield self._table(self.name + REALTIME, columns, values, as_ro=False, realtime=True)

    def _table(
        self,
        name: str,
        columns: tuple[AvroColumn, ...],
        values: Mapping[str, tuple[str, ...]],
        *,
        as_ro: bool,
        realtime: bool,
    ) -> HiveTable:
        keys = self._keys(columns)
        key_names = {key.name for key in keys}
        uri = location_of(self.opened.storage.uri)
        storage = Storage(
            columns=tuple(c for c in self._hive_columns(columns) if c.name not in key_names),
            input_format=_REALTIME_INPUT if realtime else _BASE_INPUT,
            output_format=_OUTPUT,
            buckets=0,
            serde=SerDe(
                library=_SERDE,
                parameters={QUERY_AS_RO: str(as_ro).lower(), "serialization.format": "1", "path": uri},
            ),
        )
        table = Table(
            database=self.database,
            name=name,
            storage=storage,
            location=uri,
            partition_keys=keys,
            parameters={"EXTERNAL": "TRUE", **_spark_parameters(columns, keys), **self._times()},
            kind=EXTERNAL,
        )
        partitions = (Partition(key_values, storage, f"{uri}/{path}") for path, key_values in values.items())
        return HiveTable(table, tuple(partitions) if keys else ())

    def _hive_columns(self, columns: Iterable[AvroColumn]) -> list[Column]:
        return [Column(c.name.lower(), c.hive_type(timestamps=self.timestamps), "") for c in columns]

    def _keys(self, columns: Iterable[AvroColumn]) -> tuple[Column, ...]:
        """The partition keys; ``string`` for one that is no column of the table."""
        known = {column.name: column for column in self._hive_columns(columns)}
        names = [field.partition(":")[0].lower() for field in self.opened.config.partition_fields]
        return tuple(known.get(name, Column(name, "string", "")) for name in names)

    def _times(self) -> dict[str, str]:
        """The newest write by each of its times, as HiveSync notes how far it has come; none for an empty table."""
        writes = self.opened.timeline.completed()
        if not writes:
            return {}
        completed = max(write.completion_time or "" for write in writes)
        return {LAST_COMMIT: writes[-1].requested_time, LAST_COMPLETION: completed}


def partition_values(config: TableConfig, paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The values of the partition keys by partition path, decoded as the table encodes them, without the paths from
    which they cannot be read.

    The paths of a key generator of its own are split at their slashes, as HiveSync does it.
    """
    layout = plain_layout(config)
    fields = [field.partition(":")[0] for field in config.partition_fields]
    values_by_path: dict[str, tuple[str, ...]] = {}
    for path in paths:
        values = path_values(path, layout) if layout is not None else None
        if values is None:
            segments = [path] if len(fields) == 1 else path.split("/")
            if len(segments) != len(fields):
                continue
            values = [text.removeprefix(f"{field}=") for field, text in zip(fields, segments, strict=True)]
        values_by_path[path] = tuple(values)
    return values_by_path


def location_of(uri: str) -> str:
    """A storage's root as Hadoop spells it: ``file:/lake/t`` for a local one."""
    return "file:/" + uri.removeprefix("file:").lstrip("/") if uri.startswith("file:") else uri


def _spark_parameters(columns: tuple[AvroColumn, ...], keys: tuple[Column, ...]) -> dict[str, str]:
    """How Spark knows the table: its source, and its schema with the partition columns last."""
    by_name = {column.name.lower(): column for column in columns}
    names = [key.name for key in keys]
    ordered = [c for c in columns if c.name.lower() not in names]
    ordered += [by_name.get(name, AvroColumn(name, "string", nullable=True)) for name in names]
    schema = {"type": "struct", "fields": [column.spark_field() for column in ordered]}
    text = msgspec.json.encode(schema).decode()
    parts = [text[offset : offset + SCHEMA_PART] for offset in range(0, len(text), SCHEMA_PART)]
    parameters = {"spark.sql.sources.provider": "hudi", f"{_SCHEMA}.numParts": str(len(parts))}
    parameters |= {f"{_SCHEMA}.part.{i}": part for i, part in enumerate(parts)}
    if names:
        parameters[f"{_SCHEMA}.numPartCols"] = str(len(names))
        parameters |= {f"{_SCHEMA}.partCol.{i}": by_name[n].name if n in by_name else n for i, n in enumerate(names)}
    return parameters
