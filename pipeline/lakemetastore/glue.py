"""The push to AWS Glue: its Data Catalog gets a copy of tables and their partitions.

A copy is overwritten at the next push. Tables of Glue that were not pushed from this metastore are never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from hudilake.errors import ConfigError, TransientError
from hudilake.wording import counted
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.catalog.logs import TableEntry
from lakemetastore.model import Column, Database, Partition, Storage, Table

#: The parameter of a pushed table that names the table of the metastore that it is a copy of.
PUSHED = "binlake.pushed.from"
Input = dict[str, Any]


def database_input(database: Database) -> Input:
    """A database."""
    fields = {"Name": database.name, "Description": database.description, "LocationUri": database.location}
    return _given({**fields, "Parameters": dict(database.parameters)})


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


#: The most that one request may carry (Glue's API reference).
_CREATE, _UPDATE, _DELETE = 100, 100, 25
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class PushResult:
    """What a push did for a table. Counts are partitions."""

    table: str
    change: str
    """``created``, ``updated``, ``unchanged`` or ``deleted``."""
    added: int = 0
    altered: int = 0
    removed: int = 0


def _raising_ours(call: Callable[P, R]) -> Callable[P, R]:
    """Errors of boto3 as errors of ours."""

    @wraps(call)
    def asked(*arguments: P.args, **more: P.kwargs) -> R:
        try:
            return call(*arguments, **more)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            raise ConfigError(
                f"Glue refuses: {error}", do_next="look at the rights of the user, the region and the name", code=code
            ) from error
        except BotoCoreError as error:
            raise TransientError(
                f"Glue gives no answer: {error}", do_next="look at credentials, region and network; push again"
            ) from error

    return asked


class GluePush:
    """Pushes tables of a catalog.

    Args:
        catalog: what is copied.
        client: boto3's client of Glue.
    """

    def __init__(self, catalog: Catalog, client: Any) -> None:  # noqa: ANN401 - boto3 makes its classes at run time
        self._catalog, self._glue = catalog, client

    @classmethod
    def at(cls, catalog: Catalog, region: str | None, endpoint: str | None) -> GluePush:
        """Pushes to a region, or to an address. Raises ConfigError if AWS' own settings lack what is needed."""
        try:
            return cls(catalog, boto3.client("glue", region_name=region, endpoint_url=endpoint))
        except BotoCoreError as error:
            raise ConfigError(
                f"Glue cannot be asked: {error}", do_next="give --region, or AWS' own settings"
            ) from error

    @_raising_ours
    def push(self, database: str, name: str) -> PushResult:
        """Copy a table with its partitions.

        Raises:
            NoSuchObjectError: the catalog has no such table.
            ConfigError: Glue has a table of the name that was not pushed from here, or refuses.
            TransientError: Glue gives no answer.
        """
        entry = self._catalog.tables.get(database, name)
        self._ensure_database(database)
        wanted = table_input(entry.table, entry.id)
        glue_table = self._found(database, name)
        if glue_table is None:
            self._glue.create_table(DatabaseName=database, TableInput=wanted)
            change = "created"
        else:
            self._check_ours(database, name, glue_table)
            change = "unchanged" if same(wanted, glue_table) else "updated"
            if change == "updated":
                self._glue.update_table(DatabaseName=database, TableInput=wanted)
        return PushResult(f"{database}.{name}", change, *self._push_partitions(entry))

    @_raising_ours
    def prune(self, database: str) -> list[PushResult]:
        """Delete the copies in a database of Glue whose tables the catalog no longer has under these names."""
        kept = set(self._catalog.tables.names(database))
        gone = []
        for table in self._pages("get_tables", "TableList", DatabaseName=database):
            if PUSHED in table.get("Parameters", {}) and table["Name"] not in kept:
                self._glue.delete_table(DatabaseName=database, Name=table["Name"])
                gone.append(PushResult(f"{database}.{table['Name']}", "deleted"))
        return gone

    def _ensure_database(self, name: str) -> None:
        try:
            self._glue.get_database(Name=name)
        except self._glue.exceptions.EntityNotFoundException:
            self._glue.create_database(DatabaseInput=database_input(self._catalog.databases.get(name)))

    def _found(self, database: str, name: str) -> Mapping[str, Any] | None:
        try:
            glue_table: Mapping[str, Any] = self._glue.get_table(DatabaseName=database, Name=name)["Table"]
        except self._glue.exceptions.EntityNotFoundException:
            return None
        return glue_table

    def _check_ours(self, database: str, name: str, found: Mapping[str, Any]) -> None:
        if PUSHED not in found.get("Parameters", {}):
            raise ConfigError(
                "Glue has a table of this name that was not pushed from a metastore of binlake",
                do_next="rename or drop one of the two",
                table=f"{database}.{name}",
            )

    def _push_partitions(self, entry: TableEntry) -> tuple[int, int, int]:
        place = {"DatabaseName": entry.table.database, "TableName": entry.table.name}
        there = {tuple(p["Values"]): p for p in self._pages("get_partitions", "Partitions", **place)}
        new: list[Input] = []
        changed: list[Input] = []
        for position in range(len(entry.partitions)):
            wanted = partition_input(entry.partitions[position])
            glue_partition = there.pop(tuple(wanted["Values"]), None)
            if glue_partition is None:
                new.append(wanted)
            elif not same(wanted, glue_partition):
                changed.append({"PartitionValueList": wanted["Values"], "PartitionInput": wanted})
        for some in in_portions(new, _CREATE):
            _check(self._glue.batch_create_partition(**place, PartitionInputList=some), place)
        for some in in_portions(changed, _UPDATE):
            _check(self._glue.batch_update_partition(**place, Entries=some), place)
        for some in in_portions([{"Values": list(values)} for values in there], _DELETE):
            _check(self._glue.batch_delete_partition(**place, PartitionsToDelete=some), place)
        return len(new), len(changed), len(there)

    def _pages(self, operation: str, field: str, **arguments: str) -> Iterator[Mapping[str, Any]]:
        for page in self._glue.get_paginator(operation).paginate(**arguments):
            yield from page[field]


def _check(answer: Mapping[str, Any], place: Mapping[str, str]) -> None:
    """A batch succeeds as a whole though single partitions failed. Raises TransientError for the first of these."""
    if errors := answer.get("Errors"):
        first = errors[0]
        raise TransientError(
            f"Glue did not take {counted(len(errors), 'partition')}: "
            f"{first.get('ErrorDetail', {}).get('ErrorMessage')}",
            do_next="push again; partitions that are there already are compared first",
            table=f"{place['DatabaseName']}.{place['TableName']}",
            partition=first.get("PartitionValueList") or first.get("PartitionValues"),
        )
