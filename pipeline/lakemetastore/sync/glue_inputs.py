"""Databases, tables and partitions as AWS Glue's API takes them (``DatabaseInput``, ``TableInput``, ``PartitionInput``
of its API reference)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakemetastore.model.objects import Column, Database, Partition, Storage, Table

#: The parameter of a pushed table that names the table of the metastore that it is a copy of.
PUSHED = "binlake.pushed.from"
Input = dict[str, Any]


def database_input(database: Database) -> Input:
    """A database."""
    found = {"Name": database.name, "Description": database.description, "LocationUri": database.location}
    return _given({**found, "Parameters": dict(database.parameters)})


def table_input(table: Table, table_id: str) -> Input:
    """A table. ``table_id``: what the metastore calls it, kept in ``PUSHED``."""
    return _given(
        {
            "Name": table.name,
            "Owner": table.owner,
            "Retention": table.retention,
            "StorageDescriptor": _storage(table.storage, table.location),
            "PartitionKeys": [_column(column) for column in table.partition_keys],
            "ViewOriginalText": table.view_original_text,
            "ViewExpandedText": table.view_expanded_text,
            "TableType": table.kind,
            "Parameters": {**table.parameters, PUSHED: table_id},
        }
    )


def partition_input(partition: Partition) -> Input:
    """A partition."""
    return {
        "Values": list(partition.values),
        "StorageDescriptor": _storage(partition.storage, partition.location),
        "Parameters": dict(partition.parameters),
    }


def same(wanted: Input, found: Mapping[str, Any]) -> bool:
    """Whether what Glue has is what would be written; what Glue adds of its own does not count."""
    for name, value in wanted.items():
        there = found.get(name)
        if isinstance(value, dict):
            if not same(value, there if isinstance(there, Mapping) else {}):
                return False
            if name in ("Parameters",) and set(there or {}) != set(value):
                return False
        elif value != there and not (_nothing(value) and _nothing(there)):
            return False
    return True


def _nothing(value: object) -> bool:
    return value is None or value in ([], 0, False, "")


def _storage(storage: Storage, location: str | None) -> Input:
    serde = storage.serde
    return _given(
        {
            "Columns": [_column(column) for column in storage.columns],
            "Location": location,
            "InputFormat": storage.input_format,
            "OutputFormat": storage.output_format,
            "Compressed": storage.compressed,
            "NumberOfBuckets": storage.buckets,
            "SerdeInfo": _given(
                {
                    "Name": serde.name,
                    "SerializationLibrary": serde.library,
                    "Parameters": dict(serde.parameters),
                }
            ),
            "BucketColumns": list(storage.bucket_columns),
            "SortColumns": [{"Column": s.name, "SortOrder": s.direction} for s in storage.sort_columns],
            "Parameters": dict(storage.parameters),
            "StoredAsSubDirectories": storage.stored_as_sub_directories,
        }
    )


def _column(column: Column) -> Input:
    return _given({"Name": column.name, "Type": column.type, "Comment": column.comment})


def _given(values: Mapping[str, Any]) -> Input:
    return {name: value for name, value in values.items() if value is not None}


def in_portions(values: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """The values, at most ``size`` at a time."""
    return [values[start : start + size] for start in range(0, len(values), size)]
