"""Statistics of columns: kept and given back as they were sent, the column's name in lower case. Those of several
partitions are not put together.

Neither are those of new rows with those of the rows before (``needMerge``): then nothing is known of the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hive_metastore import ttypes

from hudilake.clock import now_ms
from lakemetastore.catalog.logs import TableEntry
from lakemetastore.errors import MetaError
from lakemetastore.hive.context import Context
from lakemetastore.hive.generated import Struct
from lakemetastore.hive.message import decode, encode
from lakemetastore.hive.methods import Handler
from lakemetastore.hive.names import database_name, of_catalog
from lakemetastore.hive.to_thrift import CATALOG
from lakemetastore.model import Table


def update_table_column_statistics(context: Context, args: Struct) -> bool:
    """Keep statistics of a table's columns."""
    return _put(context, args.stats_obj, "")


def update_partition_column_statistics(context: Context, args: Struct) -> bool:
    """Keep statistics of a partition's columns."""
    return _put(context, args.stats_obj, _stored_name(args.stats_obj.statsDesc.partName))


def update_column_statistics_req(context: Context, args: Struct) -> Struct:
    """Keep statistics of columns of a table or of partitions."""
    _put_all(context, args.req)
    return ttypes.SetPartitionsStatsResponse(result=True)


def set_aggr_stats_for(context: Context, args: Struct) -> bool:
    """Keep statistics of columns of a table or of partitions."""
    return _put_all(context, args.request)


def get_table_column_statistics(context: Context, args: Struct) -> Struct | None:
    """Statistics of a table's column."""
    return _one(context, args, "")


def get_partition_column_statistics(context: Context, args: Struct) -> Struct | None:
    """Statistics of a partition's column."""
    return _one(context, args, _stored_name(args.part_name))


def get_table_statistics_req(context: Context, args: Struct) -> Struct:
    """Statistics of some of a table's columns, of those that have any."""
    request = args.request
    of_catalog(request.catName)
    entry = context.catalog.tables.get(database_name(request.dbName), request.tblName)
    return ttypes.TableStatsResult(tableStats=_objects(context, entry, request.colNames, ""))


def get_partitions_statistics_req(context: Context, args: Struct) -> Struct:
    """Statistics of some columns of partitions, of those that have any."""
    request = args.request
    of_catalog(request.catName)
    entry = context.catalog.tables.get(database_name(request.dbName), request.tblName)
    names = map(_stored_name, request.partNames or ())
    statistics = {name: _objects(context, entry, request.colNames, name) for name in names}
    return ttypes.PartitionsStatsResult(partStats={name: objects for name, objects in statistics.items() if objects})


def get_aggr_stats_for(context: Context, args: Struct) -> Struct:
    """Statistics of some columns over partitions, if only one of these has any. Several are not put together.

    A partition counts as found if it has those of all the columns.
    """
    request = args.request
    of_catalog(request.catName)
    entry = context.catalog.tables.get(database_name(request.dbName), request.tblName)
    names = dict.fromkeys(map(_stored_name, request.partNames or ()))
    statistics = [_objects(context, entry, request.colNames, name) for name in names]
    counted = [objects for objects in statistics if objects]
    if len(counted) != 1:
        return ttypes.AggrStats(colStats=[], partsFound=0)
    whole = len(counted[0]) == len({column.lower() for column in request.colNames or ()})
    return ttypes.AggrStats(colStats=counted[0], partsFound=int(whole))


def delete_table_column_statistics(context: Context, args: Struct) -> bool:
    """Forget the statistics of a table's column, or of all."""
    context.catalog.statistics.drop(database_name(args.db_name), args.tbl_name, _column(args))
    return True


def delete_partition_column_statistics(context: Context, args: Struct) -> bool:
    """Forget the statistics of a partition's column, or of all."""
    partition = _stored_name(args.part_name)
    context.catalog.statistics.drop(database_name(args.db_name), args.tbl_name, _column(args), partition)
    return True


def _column(args: Struct) -> str | None:
    return args.col_name.lower() if args.col_name is not None else None


def _stored_name(partition: str | None) -> str:
    """A partition's name with its keys in lower case. Raises MetaError for no name: that is the table's own here."""
    if not partition:
        raise MetaError(f"Partition name is invalid. {'null' if partition is None else partition}", do_next="name it")
    pairs = (part.partition("=") for part in partition.split("/"))
    return "/".join(f"{key.lower()}{equals}{value}" for key, equals, value in pairs)


def _put_all(context: Context, request: Struct) -> bool:
    sent = [(one, _partition_of(one.statsDesc)) for one in request.colStats or ()]
    places = [(one.statsDesc.dbName, one.statsDesc.tableName, partition) for one, partition in sent]
    for (statistics, partition), place in zip(sent, places, strict=True):
        _put(context, statistics, partition, merged=bool(request.needMerge) or places.count(place) > 1)
    return True


def _partition_of(described: Struct) -> str:
    return "" if described.isTblLevel else _stored_name(described.partName)


def _put(context: Context, statistics: Struct, partition: str, *, merged: bool = False) -> bool:
    """Keep the statistics. ``merged``: they are of some rows only, so those of the columns are forgotten instead."""
    described = statistics.statsDesc
    of_catalog(described.catName)
    analyzed = described.lastAnalyzed or now_ms() // 1000
    columns = {sent.colName.lower(): _kept(sent, analyzed) for sent in statistics.statsObj or ()}
    database = database_name(described.dbName)
    entry = context.catalog.tables.get(database, described.tableName)
    _check_columns(entry.table, columns)
    if not merged:
        context.catalog.statistics.put(database, described.tableName, columns, partition)
        return True
    for column in context.catalog.statistics.get(entry, list(columns), partition):
        context.catalog.statistics.drop(database, described.tableName, column, partition)
    return True


def _check_columns(table: Table, columns: Iterable[str]) -> None:
    known = {column.name for column in table.storage.columns}
    for column in columns:
        if column not in known:
            raise MetaError(
                f"Column {column} doesn't exist in table {table.name} in database {table.database}",
                do_next="send statistics of columns that the table has",
            )


def _kept(sent: Struct, analyzed: int) -> bytes:
    """A column's statistics with the time of their making, as bytes of ttypes.ColumnStatistics."""
    return encode(
        ttypes.ColumnStatistics(statsDesc=ttypes.ColumnStatisticsDesc(lastAnalyzed=analyzed), statsObj=[sent])
    )


def _one(context: Context, args: Struct, partition: str) -> Struct | None:
    """None where there are none, as HMS 3.1.3 answers."""
    entry = context.catalog.tables.get(database_name(args.db_name), args.tbl_name)
    column = args.col_name.lower()
    kept = context.catalog.statistics.get(entry, [column], partition).get(column)
    if kept is None:
        return None
    statistics = _given(kept)
    described = statistics.statsDesc
    described.isTblLevel, described.dbName, described.tableName = not partition, entry.table.database, entry.table.name
    described.partName, described.catName = partition or None, CATALOG
    return statistics


def _objects(context: Context, entry: TableEntry, columns: Sequence[str] | None, partition: str) -> list[Struct]:
    wanted = [column.lower() for column in columns or ()]
    kept = context.catalog.statistics.get(entry, wanted, partition)
    return [_given(data).statsObj[0] for data in kept.values()]


def _given(kept: bytes) -> Struct:
    """Kept statistics under the name by which a client looks for them."""
    statistics = decode(kept, ttypes.ColumnStatistics)
    for column in statistics.statsObj:
        column.colName = column.colName.lower()
    return statistics


CALLS: dict[str, Handler] = {
    "update_table_column_statistics": update_table_column_statistics,
    "update_partition_column_statistics": update_partition_column_statistics,
    "update_table_column_statistics_req": update_column_statistics_req,
    "update_partition_column_statistics_req": update_column_statistics_req,
    "set_aggr_stats_for": set_aggr_stats_for,
    "get_table_column_statistics": get_table_column_statistics,
    "get_partition_column_statistics": get_partition_column_statistics,
    "get_table_statistics_req": get_table_statistics_req,
    "get_partitions_statistics_req": get_partitions_statistics_req,
    "get_aggr_stats_for": get_aggr_stats_for,
    "delete_table_column_statistics": delete_table_column_statistics,
    "delete_partition_column_statistics": delete_partition_column_statistics,
}
