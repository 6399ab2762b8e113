"""Partitions that are read. A negative number of partitions means all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from hive_metastore import ttypes

from lakemetastore.catalog.logs import TableEntry
from lakemetastore.catalog.names import escaped, partition_name, partition_spec, partition_values, qualified
from lakemetastore.catalog.partitions import Positions
from lakemetastore.errors import MetaError, NoSuchObjectError
from lakemetastore.hive.context import Context
from lakemetastore.hive.encoded import LIST, STRUCT, EncodedResult, only_field, struct_list
from lakemetastore.hive.generated import Struct
from lakemetastore.hive.methods import Handler
from lakemetastore.hive.names import database_name, of_catalog
from lakemetastore.model import Partition


def get_partition(context: Context, args: Struct) -> EncodedResult:
    """The partition of some values."""
    entry = _entry(context, args.db_name, args.tbl_name)
    return _one(context, entry, context.catalog.partitions.get(entry, args.part_vals or ()))


def get_partition_with_auth(context: Context, args: Struct) -> EncodedResult:
    """The partition of some values, with its values as they are stored (HMS 3.1.3)."""
    entry = _entry(context, args.db_name, args.tbl_name)
    asked = context.catalog.partitions.get(entry, args.part_vals or ())
    stored = entry.partitions.named(partition_name(entry.table.partition_keys, asked.values))
    return _one(context, entry, stored or asked)


def get_partition_req(context: Context, args: Struct) -> EncodedResult:
    """The partition of some values."""
    request = args.req
    of_catalog(request.catName)
    database = database_name(request.dbName)
    if not context.catalog.tables.has(database, request.tblName):
        raise NoSuchObjectError(  # the words of HMS 4.0.1
            f"Unable to get partition because {qualified(database, request.tblName)} does not exist",
            do_next="look at the names of the tables",
        )
    entry = _entry(context, database, request.tblName)
    encoded_partition = _one(context, entry, context.catalog.partitions.get(entry, request.partVals or ()))
    return EncodedResult(STRUCT, only_field(STRUCT, 1, encoded_partition.parts))


def get_partition_by_name(context: Context, args: Struct) -> EncodedResult:
    """The partition of a name such as ``dt=2024-01-01/hour=5``."""
    entry = _entry(context, args.db_name, args.tbl_name)
    return _one(context, entry, context.catalog.partitions.named(entry, args.part_name))


def get_partitions(context: Context, args: Struct) -> EncodedResult:
    """The partitions of a table."""
    return EncodedResult(LIST, _all(context, _entry(context, args.db_name, args.tbl_name), args.max_parts))


def get_partitions_with_auth(context: Context, args: Struct) -> EncodedResult:
    """The partitions of a table; none of an unknown table."""
    return EncodedResult(LIST, _all_of_any(context, args.db_name, args.tbl_name, args.max_parts))


def get_partitions_req(context: Context, args: Struct) -> EncodedResult:
    """The partitions of a table; none of an unknown table (HMS 4.0.1)."""
    request = args.req
    of_catalog(request.catName)
    encoded_partitions = _all_of_any(context, request.dbName, request.tblName, request.maxParts)
    return EncodedResult(STRUCT, only_field(LIST, 1, encoded_partitions))


def get_partitions_ps(context: Context, args: Struct) -> EncodedResult:
    """The partitions with some values for the first keys; the empty text is any value."""
    entry = _entry(context, args.db_name, args.tbl_name)
    return EncodedResult(LIST, _with(context, entry, args.part_vals, args.max_parts))


def get_partitions_ps_with_auth_req(context: Context, args: Struct) -> EncodedResult:
    """The partitions with some values for the first keys; without values all (HMS 4.0.1)."""
    request = args.req
    of_catalog(request.catName)
    entry = _entry(context, request.dbName, request.tblName)
    if not request.partVals:
        return EncodedResult(STRUCT, only_field(LIST, 1, _all(context, entry, request.maxParts)))
    return EncodedResult(STRUCT, only_field(LIST, 1, _with(context, entry, request.partVals, request.maxParts)))


def get_partitions_by_filter(context: Context, args: Struct) -> EncodedResult:
    """The partitions for which a condition on the keys holds."""
    entry = _entry(context, args.db_name, args.tbl_name)
    positions = _first(context.catalog.partitions.matching(entry, args.filter or ""), args.max_parts)
    return EncodedResult(LIST, _bytes(context, entry, entry.partitions.select(positions)))


def get_num_partitions_by_filter(context: Context, args: Struct) -> int:
    """For how many partitions a condition on the keys holds."""
    entry = _entry(context, args.db_name, args.tbl_name)
    return len(context.catalog.partitions.matching(entry, args.filter or ""))


def get_partitions_by_names(context: Context, args: Struct) -> EncodedResult:
    """Those of some partitions that there are, in the order of all partitions."""
    entry = _entry(context, args.db_name, args.tbl_name)
    return EncodedResult(LIST, _bytes(context, entry, _named(entry, args.names)))


def get_partitions_by_names_req(context: Context, args: Struct) -> EncodedResult:
    """Those of some partitions that there are, in the order of all partitions."""
    request = args.req
    entry = _entry(context, request.db_name, request.tbl_name)
    return EncodedResult(STRUCT, only_field(LIST, 1, _bytes(context, entry, _named(entry, request.names))))


def get_partition_names(context: Context, args: Struct) -> list[str] | EncodedResult:
    """The names of a table's partitions."""
    entry = _entry(context, args.db_name, args.tbl_name)
    if 0 <= args.max_parts < len(entry.partitions):
        return entry.partitions.names(np.arange(args.max_parts, dtype=np.int64))
    return EncodedResult(LIST, [context.answers.names(entry)])


def get_partition_names_ps(context: Context, args: Struct) -> list[str]:
    """The names of the partitions with some values for the first keys."""
    return _names_with(context, args.db_name, args.tbl_name, args.part_vals, args.max_parts)


def get_partition_names_ps_req(context: Context, args: Struct) -> Struct:
    """The names of the partitions with some values for the first keys."""
    request = args.req
    of_catalog(request.catName)
    names = _names_with(context, request.dbName, request.tblName, request.partValues, request.maxParts)
    return ttypes.GetPartitionNamesPsResponse(names=names)


def get_partition_values(context: Context, args: Struct) -> Struct:
    """The values of some keys, each combination once if the client wants that.

    Without a condition they are spelled as in names of partitions (HMS 3.1.3).
    """
    request = args.request
    of_catalog(request.catName)
    entry = _entry(context, request.dbName, request.tblName)
    partitions = _matching(context, entry, request.filter)
    keys = [key.name for key in entry.table.partition_keys]
    named = [column.name.lower() for column in request.partitionKeys or ()]
    wanted = [_key(keys, name) for name in named]
    spelled: Callable[[str], str] = str if request.filter else escaped
    rows: Iterable[tuple[str, ...]] = (tuple(spelled(p.values[i]) for i in wanted) for p in partitions)
    if request.applyDistinct:
        rows = dict.fromkeys(rows)
    order = [_key(named, column.name) for column in request.partitionOrder or ()]
    ordered = sorted(rows, key=lambda row: [row[i] for i in order or range(len(row))])
    if order and not request.ascending:
        ordered.reverse()
    limit = len(ordered) if request.maxParts < 0 else request.maxParts
    answered = [ttypes.PartitionValuesRow(row=list(row)) for row in ordered[:limit]]
    return ttypes.PartitionValuesResponse(partitionValues=answered)


def partition_name_to_vals(context: Context, args: Struct) -> list[str]:
    """The values in a partition's name."""
    return list(partition_values(args.part_name)) if args.part_name else []


def partition_name_to_spec(context: Context, args: Struct) -> dict[str, str]:
    """The keys and values in a partition's name."""
    return partition_spec(args.part_name) if args.part_name else {}


def _entry(context: Context, database: str, name: str) -> TableEntry:
    return context.catalog.tables.get(database_name(database), name)


def _one(context: Context, entry: TableEntry, partition: Partition) -> EncodedResult:
    return EncodedResult(STRUCT, context.answers.partitions(entry, [partition]))


def _bytes(context: Context, entry: TableEntry, partitions: Sequence[Partition]) -> list[bytes]:
    return struct_list(context.answers.partitions(entry, partitions))


def _all(context: Context, entry: TableEntry, limit: int) -> list[bytes]:
    count = len(entry.partitions) if limit < 0 else min(limit, len(entry.partitions))
    return _bytes(context, entry, entry.partitions.select(np.arange(count, dtype=np.int64)))


def _all_of_any(context: Context, database: str, name: str, limit: int) -> list[bytes]:
    if not context.catalog.tables.has(database_name(database), name):
        return struct_list([])
    return _all(context, _entry(context, database, name), limit)


def _with(context: Context, entry: TableEntry, values: Sequence[str] | None, limit: int) -> list[bytes]:
    positions = _first(context.catalog.partitions.having(entry, values or ()), limit)
    return _bytes(context, entry, entry.partitions.select(positions))


def _first(positions: Positions, limit: int) -> Positions:
    return positions if limit < 0 else positions[:limit]


def _matching(context: Context, entry: TableEntry, condition: str | None) -> Iterable[Partition]:
    if not condition:
        return entry.partitions
    return entry.partitions.select(context.catalog.partitions.matching(entry, condition))


def _named(entry: TableEntry, names: Sequence[str] | None) -> list[Partition]:
    positions = {entry.partitions.position(name) for name in names or ()} - {None}
    return [entry.partitions[position] for position in sorted(p for p in positions if p is not None)]


def _names_with(context: Context, database: str, name: str, values: Sequence[str] | None, limit: int) -> list[str]:
    entry = _entry(context, database, name)
    return entry.partitions.names(_first(context.catalog.partitions.having(entry, values or ()), limit))


def _key(keys: Sequence[str], name: str) -> int:
    try:
        return keys.index(name.lower())
    except ValueError as error:
        raise MetaError(f"{name} is no partition key", do_next=f"ask for some of {', '.join(keys)}") from error


CALLS: dict[str, Handler] = {
    "get_partition": get_partition,
    "get_partition_with_auth": get_partition_with_auth,
    "get_partition_req": get_partition_req,
    "get_partition_by_name": get_partition_by_name,
    "get_partitions": get_partitions,
    "get_partitions_with_auth": get_partitions_with_auth,
    "get_partitions_req": get_partitions_req,
    "get_partitions_ps": get_partitions_ps,
    "get_partitions_ps_with_auth": get_partitions_ps,
    "get_partitions_ps_with_auth_req": get_partitions_ps_with_auth_req,
    "get_partitions_by_filter": get_partitions_by_filter,
    "get_num_partitions_by_filter": get_num_partitions_by_filter,
    "get_partitions_by_names": get_partitions_by_names,
    "get_partitions_by_names_req": get_partitions_by_names_req,
    "get_partition_names": get_partition_names,
    "get_partition_names_ps": get_partition_names_ps,
    "get_partition_names_ps_req": get_partition_names_ps_req,
    "get_partition_values": get_partition_values,
    "partition_name_to_vals": partition_name_to_vals,
    "partition_name_to_spec": partition_name_to_spec,
}
