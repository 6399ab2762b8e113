"""Partitions that are added, altered and dropped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hive_metastore import ttypes

from lakemetastore.catalog.claims import Removal
from lakemetastore.catalog.locations import partition_location
from lakemetastore.catalog.logs import TableEntry
from lakemetastore.catalog.names import CATALOG, partition_name
from lakemetastore.catalog.partition_calls import changed_locations, new_locations, values_of_name
from lakemetastore.errors import MetaError, NoSuchObjectError
from lakemetastore.hive import from_thrift
from lakemetastore.hive.context import Context
from lakemetastore.hive.encoded import LIST, STRUCT, EncodedResult, only_field, struct_list
from lakemetastore.hive.generated import Struct
from lakemetastore.hive.handlers.partition_specs import spread
from lakemetastore.hive.methods import Handler
from lakemetastore.hive.names import database_name, of_catalog
from lakemetastore.hive.table_files import Move, is_external
from lakemetastore.model import Partition, Storage


def add_partition(context: Context, args: Struct) -> EncodedResult:
    """Add a partition."""
    sent = args.new_part
    of_catalog(sent.catName)
    database, new = database_name(sent.dbName), from_thrift.partition(sent)
    with _made(context, database, sent.tableName, [new]):
        added = context.catalog.partitions.add(database, sent.tableName, new)
    return _one(context, context.catalog.tables.get(database, sent.tableName), added)


def add_partitions(context: Context, args: Struct) -> int:
    """Add partitions of one table, all or none: how many."""
    return len(_add(context, args.new_parts or ()))


def add_partitions_pspec(context: Context, args: Struct) -> int:
    """Add partitions that share a storage descriptor, all or none: how many."""
    return len(_add(context, [part for spec in args.new_parts or () for part in spread(spec)]))


def add_partitions_req(context: Context, args: Struct) -> EncodedResult | Struct:
    """Add partitions of one table, all or none; with ``ifNotExists`` those that there are not."""
    request = args.request
    of_catalog(request.catName)
    if not request.parts:
        return ttypes.AddPartitionsResult()
    database, name = database_name(request.dbName), request.tblName
    parts = _parts_of(context, database, name, request.parts)
    with _made(context, database, name, parts):
        added = context.catalog.partitions.add_all(database, name, parts, if_not_exists=bool(request.ifNotExists))
    if not request.needResult:
        return ttypes.AddPartitionsResult()
    encoded = context.answers.partitions(context.catalog.tables.get(database, name), added)
    return EncodedResult(STRUCT, only_field(LIST, 1, struct_list(encoded)))


def append_partition(context: Context, args: Struct) -> EncodedResult:
    """Add a partition with some values at the place that follows from them."""
    return _append(context, args, args.part_vals or ())


def append_partition_by_name(context: Context, args: Struct) -> EncodedResult:
    """Add a partition of a name at the place that follows from it."""
    table = context.catalog.tables.get(database_name(args.db_name), args.tbl_name).table
    return _append(context, args, values_of_name(table, args.part_name))


def alter_partition(context: Context, args: Struct) -> None:
    """Replace a partition."""
    database, new = database_name(args.db_name), from_thrift.partition(args.new_part)
    _allow(context, database, args.tbl_name, [new])
    context.catalog.partitions.alter(database, args.tbl_name, new)


def alter_partitions(context: Context, args: Struct) -> None:
    """Replace partitions, all or none."""
    _alter(context, args.db_name, args.tbl_name, args.new_parts or ())


def alter_partitions_req(context: Context, args: Struct) -> Struct:
    """Replace partitions, all or none."""
    of_catalog(args.req.catName)
    _alter(context, args.req.dbName, args.req.tableName, args.req.partitions or ())
    return ttypes.AlterPartitionsResponse()


def rename_partition(context: Context, args: Struct) -> None:
    """Give a partition other values."""
    new = from_thrift.partition(args.new_part)
    _rename(context, args.db_name, args.tbl_name, args.part_vals or (), new)


def rename_partition_req(context: Context, args: Struct) -> Struct:
    """Give a partition other values."""
    request = args.req
    of_catalog(request.catName)
    new = from_thrift.partition(request.newPart)
    _rename(context, request.dbName, request.tableName, request.partVals or (), new)
    return ttypes.RenamePartitionResponse()


def drop_partition(context: Context, args: Struct) -> bool:
    """Drop the partition of some values."""
    values = args.part_vals or ()
    try:
        entry = context.catalog.tables.get(database_name(args.db_name), args.tbl_name)
    except NoSuchObjectError as error:  # HMS names the partition, not the table
        raise NoSuchObjectError(f"partition values=[{', '.join(values)}]", do_next=error.do_next) from error
    return _drop_one(context, entry, context.catalog.partitions.get(entry, values), args.deleteData)


def drop_partition_by_name(context: Context, args: Struct) -> bool:
    """Drop the partition of a name."""
    try:
        entry = context.catalog.tables.get(database_name(args.db_name), args.tbl_name)
    except NoSuchObjectError as error:  # HMS leaves the catalog out here
        what = f"{database_name(args.db_name)}.{args.tbl_name} table not found"
        raise NoSuchObjectError(what, do_next=error.do_next) from error
    return _drop_one(context, entry, context.catalog.partitions.named(entry, args.part_name), args.deleteData)


def drop_partitions_req(context: Context, args: Struct) -> EncodedResult | Struct:
    """Drop partitions by their names, all or none; conditions as serialized Hive expressions are not understood."""
    request = args.req
    of_catalog(request.catName)
    if request.parts.exprs:
        raise MetaError(
            "Partitions are dropped by their names; serialized expressions of Hive are not understood",
            do_next="send names",
        )
    entry = context.catalog.tables.get(database_name(request.dbName), request.tblName)
    names, if_exists = request.parts.names or (), bool(request.ifExists)
    dropped = _drop(context, entry, names, request.deleteData, if_exists=if_exists)
    if not request.needResult:
        return ttypes.DropPartitionsResult()
    return EncodedResult(STRUCT, only_field(LIST, 1, struct_list(context.answers.partitions(entry, dropped))))


def _add(context: Context, sent: Sequence[Struct]) -> list[Partition]:
    if not sent:
        return []
    of_catalog(sent[0].catName)
    database, name = database_name(sent[0].dbName), sent[0].tableName
    parts = _parts_of(context, database, name, sent)
    with _made(context, database, name, parts):
        return context.catalog.partitions.add_all(database, name, parts)


def _parts_of(context: Context, database: str, name: str, sent: Sequence[Struct]) -> list[Partition]:
    """The partitions, all of one table if there is such a table. Raises MetaError."""
    for part in sent if context.catalog.tables.has(database, name) else ():
        if (database_name(part.dbName).lower(), part.tableName.lower()) != (database.lower(), name.lower()):
            raise MetaError(
                f"Partition does not belong to target table {CATALOG}.{database}.{name}:"
                f" Partition(values:[{', '.join(part.values)}], dbName:{part.dbName}, tableName:{part.tableName})",
                do_next="add the partitions of each table by a call",
            )
    return from_thrift.partitions(sent)


def _append(context: Context, args: Struct, values: Sequence[str]) -> EncodedResult:
    database = database_name(args.db_name)
    with _made(context, database, args.tbl_name, [Partition(tuple(values), Storage())]):
        added = context.catalog.partitions.append(database, args.tbl_name, values)
    entry = context.catalog.tables.get(database, args.tbl_name)
    return _one(context, entry, added)


@contextmanager
def _made(context: Context, database: str, name: str, parts: Sequence[Partition]) -> Iterator[None]:
    """The directories of partitions that are added in the block."""
    entry = context.catalog.tables.get(database, name) if context.catalog.tables.has(database, name) else None
    with context.services.files.made(new_locations(entry, parts) if entry else []):
        yield


def _allow(context: Context, database: str, name: str, parts: Sequence[Partition]) -> None:
    """Refuse locations of changed partitions that clients may not name, but those that they have."""
    if context.catalog.tables.has(database, name):
        known = context.catalog.tables.get(database, name)
        context.services.files.allow(*changed_locations(known, parts))


def _alter(context: Context, sent_database: str, name: str, sent: Sequence[Struct]) -> None:
    database, parts = database_name(sent_database), from_thrift.partitions(sent)
    _allow(context, database, name, parts)
    context.catalog.partitions.alter_all(database, name, parts)


def _rename(context: Context, sent: str, name: str, values: Sequence[str], new: Partition) -> None:
    """A partition of a managed table moves to the place that its new values give it."""
    database, catalog = database_name(sent), context.catalog
    entry = catalog.tables.get(database, name) if catalog.tables.has(database, name) else None
    move = entry and _move(context, entry, values, new)
    if not move:
        catalog.partitions.rename(database, name, values, new)
        return
    assert entry is not None
    files, going = (
        context.services.files,
        Removal(frozenset([entry.id]), frozenset([partition_name(entry.table.partition_keys, values)])),
    )
    with files.moving(files.claims(catalog, going), move):
        catalog.partitions.rename(database, name, values, new, move.new)


def _move(context: Context, entry: TableEntry, values: Sequence[str], new: Partition) -> Move | None:
    """The way of a partition's files; None if they stay, or if the change is refused."""
    keys = entry.table.partition_keys
    if is_external(entry.table) or len(keys) != len(values) or len(keys) != len(new.values):
        return None
    name, new_name = partition_name(keys, values), partition_name(keys, new.values)
    before, place = entry.partitions.named(name), partition_location(entry.table, new.values)
    if before is None or before.location is None or place is None or entry.partitions.named(new_name) is not None:
        return None

    def done() -> bool:
        now = context.catalog.tables.get(entry.table.database, entry.table.name)
        return now.partitions.named(new_name) is not None

    return Move(entry.table, before.location, place, done)


def _drop_one(context: Context, entry: TableEntry, partition: Partition, delete_data: bool | None) -> bool:
    _drop(context, entry, [partition_name(entry.table.partition_keys, partition.values)], delete_data)
    return True


def _drop(
    context: Context, entry: TableEntry, names: Sequence[str], delete_data: bool | None, *, if_exists: bool = False
) -> list[Partition]:
    table, files = entry.table, context.services.files
    if not delete_data:
        return context.catalog.partitions.drop(table.database, table.name, names, if_exists=if_exists)
    going = Removal(frozenset([entry.id]), frozenset(names))
    named_partitions = (entry.partitions.named(name) for name in names)
    files.check(
        files.claims(context.catalog, going), table, [partition.location for partition in named_partitions if partition]
    )
    dropped = context.catalog.partitions.drop(table.database, table.name, names, if_exists=if_exists)
    locations = [partition.location for partition in dropped]
    for location in files.delete_dropped(files.claims(context.catalog, going), table, locations):
        files.delete_parents(table, location, len(table.partition_keys) - 1)
    return dropped


def _one(context: Context, entry: TableEntry, partition: Partition) -> EncodedResult:
    return EncodedResult(STRUCT, context.answers.partitions(entry, [partition]))


CALLS: dict[str, Handler] = {
    "add_partition": add_partition,
    "add_partition_with_environment_context": add_partition,
    "add_partitions": add_partitions,
    "add_partitions_pspec": add_partitions_pspec,
    "add_partitions_req": add_partitions_req,
    "append_partition": append_partition,
    "append_partition_with_environment_context": append_partition,
    "append_partition_by_name": append_partition_by_name,
    "append_partition_by_name_with_environment_context": append_partition_by_name,
    "alter_partition": alter_partition,
    "alter_partition_with_environment_context": alter_partition,
    "alter_partitions": alter_partitions,
    "alter_partitions_with_environment_context": alter_partitions,
    "alter_partitions_req": alter_partitions_req,
    "rename_partition": rename_partition,
    "rename_partition_req": rename_partition_req,
    "drop_partition": drop_partition,
    "drop_partition_with_environment_context": drop_partition,
    "drop_partition_by_name": drop_partition_by_name,
    "drop_partition_by_name_with_environment_context": drop_partition_by_name,
    "drop_partitions_req": drop_partitions_req,
}
