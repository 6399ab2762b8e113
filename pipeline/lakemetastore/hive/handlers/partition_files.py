"""Calls whose purpose are files: tables and partitions that are emptied, partitions that another table gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack

import msgspec
from hive_metastore import ttypes

from lakemetastore.catalog.claims import Removal
from lakemetastore.catalog.locations import partition_location, same_place
from lakemetastore.catalog.logs import TableEntry
from lakemetastore.catalog.names import qualified
from lakemetastore.errors import MetaError, NoSuchObjectError
from lakemetastore.hive import to_thrift
from lakemetastore.hive.context import Context
from lakemetastore.hive.generated import Struct
from lakemetastore.hive.methods import Handler
from lakemetastore.hive.names import database_name
from lakemetastore.hive.table_files import Move, is_external
from lakemetastore.model import Column, Partition

_COUNTS = frozenset({"numFiles", "totalSize", "numRows", "rawDataSize", "numFilesErasureCoded"})


def truncate_table(context: Context, args: Struct) -> None:
    """Delete the rows of a managed table, or of some of its partitions; those that there are not are left out."""
    _truncate(context, args.dbName, args.tableName, args.partNames)


def truncate_table_req(context: Context, args: Struct) -> Struct:
    """Delete the rows of a managed table, or of some of its partitions."""
    request = args.req
    _truncate(context, request.dbName, request.tableName, request.partNames)
    return ttypes.TruncateTableResponse()


def exchange_partition(context: Context, args: Struct) -> Struct:
    """Move the partitions with some values to another table. The answer is empty (HMS 3.1.3)."""
    exchange_partitions(context, args)
    return ttypes.Partition()


def exchange_partitions(context: Context, args: Struct) -> list[Struct]:
    """Move the partitions with some values to another table: the partitions as they are there."""
    source = _table(context, args.source_db, args.source_table_name, "source")
    target = _table(context, args.dest_db, args.dest_table_name, "destination")
    names = _chosen(context, source, args.partitionSpecs or {})
    if _types(source.table.storage.columns) != _types(target.table.storage.columns) or _types(
        source.table.partition_keys
    ) != _types(target.table.partition_keys):
        raise MetaError("The tables have different schemas. Their partitions cannot be exchanged.")
    for name in names:
        if target.partitions.named(name) is not None:
            raise MetaError(f"The partition {name} already exists in the table {target.table.name}")
    moves = [_move(context, source, target, name) for name in names]
    catalog, files = context.catalog, context.services.files
    claims = files.claims(catalog, Removal(frozenset([source.id, target.id]), frozenset(names)))
    with ExitStack() as moving:
        for move in moves:
            moving.enter_context(files.moving(claims, move))
        wanted = [_at(source, move.new, name) for move, name in zip(moves, names, strict=True)]
        added = catalog.partitions.add_all(target.table.database, target.table.name, wanted)
    catalog.partitions.drop(source.table.database, source.table.name, names, if_exists=True)
    levels = _levels_below(source, args.partitionSpecs or {})
    for move in moves:
        files.delete_parents(source.table, move.old, levels)
    return [to_thrift.partition(target.table, partition) for partition in added]


def _truncate(context: Context, database: str, name: str, wanted: Sequence[str] | None) -> None:
    entry = context.catalog.tables.get(database_name(database), name)
    if wanted is None and not entry.table.partition_keys:
        places, going = [entry.table.location], Removal(frozenset([entry.id]))
    else:
        names = [n for n in (entry.partitions.names() if wanted is None else wanted) if entry.partitions.named(n)]
        named_partitions = (entry.partitions.named(one) for one in names)
        places = [partition.location for partition in named_partitions if partition]
        going = Removal(frozenset([entry.id]), frozenset(names))
    files = context.services.files
    files.empty(files.claims(context.catalog, going), entry.table, [place for place in places if place])
    _forget_counts(context, entry, going.partitions or ())


def _forget_counts(context: Context, entry: TableEntry, names: Iterable[str]) -> None:
    """No rows are left: numbers of files and rows are 0, statistics of columns are gone."""
    catalog, where = context.catalog, (entry.table.database, entry.table.name)
    named_partitions = [partition for partition in map(entry.partitions.named, names) if partition]
    counted = [
        msgspec.structs.replace(p, parameters=_none(p.parameters))
        for p in named_partitions
        if p.parameters.keys() & _COUNTS
    ]
    if counted:
        catalog.partitions.alter_all(*where, counted)
    if not entry.table.partition_keys and entry.table.parameters.keys() & _COUNTS:
        catalog.tables.alter(*where, msgspec.structs.replace(entry.table, parameters=_none(entry.table.parameters)))
    for name in [*names] if entry.table.partition_keys else [""]:
        if name in entry.statistics:
            catalog.statistics.drop(*where, partition=name)


def _none(parameters: Mapping[str, str]) -> dict[str, str]:
    return {key: "0" if key in _COUNTS else value for key, value in parameters.items()}


def _table(context: Context, database: str, name: str, part: str) -> TableEntry:
    try:
        return context.catalog.tables.get(database_name(database), name)
    except NoSuchObjectError as error:
        where = qualified(database_name(database), name)
        raise MetaError(f"The {part} table {where} not found", do_next=error.do_next) from error


def _chosen(context: Context, source: TableEntry, spec: Mapping[str, str]) -> list[str]:
    """The names of the partitions with the values of a spec; other keys than the table's choose nothing."""
    values = [spec.get(key.name, "") for key in source.table.partition_keys]
    positions = source.partitions.names(context.catalog.partitions.having(source, values)) if any(values) else []
    if not positions:
        shown = ", ".join(f"{key}={value}" for key, value in spec.items())
        raise MetaError(f"No partition is found with the values {{{shown}}} for the table {source.table.name}")
    return positions


def _move(context: Context, source: TableEntry, target: TableEntry, name: str) -> Move:
    """The way of a partition's files. Raises MetaError where the two tables do not own them."""
    partition = source.partitions.named(name)
    assert partition is not None
    new = partition_location(target.table, partition.values)
    at_default = same_place(partition.location, partition_location(source.table, partition.values))
    if is_external(source.table) or is_external(target.table) or new is None or not at_default:
        raise MetaError(
            f"The partition {name} of {source.table.name} cannot be exchanged: both tables must be managed, and the"
            " partition where its values put it",
            do_next="add the partition to the other table at its location, and drop it here",
        )
    assert partition.location is not None
    where = target.table.database, target.table.name

    def done() -> bool:
        return context.catalog.tables.get(*where).partitions.named(name) is not None

    return Move(source.table, partition.location, new, done)


def _at(source: TableEntry, location: str, name: str) -> Partition:
    partition = source.partitions.named(name)
    assert partition is not None
    return msgspec.structs.replace(partition, location=location)


def _levels_below(source: TableEntry, spec: Mapping[str, str]) -> int:
    """How many directories above each partition's moved as a whole: those below the first keys that have a value."""
    keys = source.table.partition_keys
    first = next((i for i, key in enumerate(keys) if not spec.get(key.name)), len(keys))
    return min(len(keys) - first, len(keys) - 1)


def _types(columns: Sequence[Column]) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in columns]


CALLS: dict[str, Handler] = {
    "truncate_table": truncate_table,
    "truncate_table_req": truncate_table_req,
    "exchange_partition": exchange_partition,
    "exchange_partitions": exchange_partitions,
}
