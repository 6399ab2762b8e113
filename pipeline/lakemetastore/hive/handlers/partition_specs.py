"""Partitions as specs: lists, or places below a root with one storage descriptor for all."""

from __future__ import annotations

from collections.abc import Sequence

from hive_metastore import ttypes

from lakemetastore.catalog.logs import TableEntry
from lakemetastore.errors import MetaError
from lakemetastore.hive import to_thrift
from lakemetastore.hive.context import Context
from lakemetastore.hive.generated import Struct
from lakemetastore.hive.methods import Handler
from lakemetastore.hive.names import database_name
from lakemetastore.model import Partition


def spread(spec: Struct) -> list[Struct]:
    """The partitions of a spec, each with a storage descriptor of its own."""
    if spec.partitionList is not None:
        return list(spec.partitionList.partitions or ())
    shared = spec.sharedSDPartitionSpec
    if shared is None:
        raise MetaError("A spec has neither partitions nor a shared storage descriptor", do_next="send one of them")
    root = spec.rootPath or (shared.sd.location if shared.sd else None) or ""
    return [_placed(spec, shared.sd, part, root) for part in shared.partitions or ()]


def get_partitions_pspec(context: Context, args: Struct) -> list[Struct]:
    """The partitions of a table as specs."""
    entry = context.catalog.tables.get(database_name(args.db_name), args.tbl_name)
    limit = len(entry.partitions) if args.max_parts < 0 else args.max_parts
    return specs(entry, list(entry.partitions)[:limit])


def get_part_specs_by_filter(context: Context, args: Struct) -> list[Struct]:
    """The partitions for which a condition on the keys holds, as specs."""
    entry = context.catalog.tables.get(database_name(args.db_name), args.tbl_name)
    positions = context.catalog.partitions.matching(entry, args.filter or "")
    return specs(entry, entry.partitions.select(positions if args.max_parts < 0 else positions[: args.max_parts]))


def specs(entry: TableEntry, partitions: Sequence[Partition]) -> list[Struct]:
    """Partitions as one spec that lists them."""
    listed = ttypes.PartitionListComposingSpec(partitions=[to_thrift.partition(entry.table, p) for p in partitions])
    return [
        ttypes.PartitionSpec(
            dbName=entry.table.database,
            tableName=entry.table.name,
            rootPath=entry.table.location,
            partitionList=listed,
            catName=to_thrift.CATALOG,
            writeId=None,
        )
    ]


def _placed(spec: Struct, sd: Struct, part: Struct, root: str) -> Struct:
    placed = None
    if sd is not None:
        fields = {field[2]: getattr(sd, field[2]) for field in sd.thrift_spec if field}
        placed = ttypes.StorageDescriptor(**{**fields, "location": root + (part.relativePath or "")})
    return ttypes.Partition(
        values=part.values,
        dbName=spec.dbName,
        tableName=spec.tableName,
        createTime=part.createTime,
        lastAccessTime=part.lastAccessTime,
        sd=placed,
        parameters=part.parameters,
        catName=spec.catName,
    )


CALLS: dict[str, Handler] = {
    "get_partitions_pspec": get_partitions_pspec,
    "get_part_specs_by_filter": get_part_specs_by_filter,
}
