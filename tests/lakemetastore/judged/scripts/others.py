"""Functions, statistics, configuration, roles, locks and notifications: what clients ask besides."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hive_metastore import ttypes

from tests.lakemetastore.judged.calls import Call, call
from tests.lakemetastore.judged.objects import columns, database, partition, table


def script(prefix: str, rng: random.Random) -> Iterator[Call]:
    """The calls of a seed; the database's name begins with ``prefix``."""
    db = f"{prefix}_o"
    yield call("create_database", database(db))
    yield call("create_table", table(db, "t", columns("dt string")))
    yield call("add_partitions", [partition(db, "t", [value]) for value in "ab"])
    yield from _server(rng)
    yield from _functions(db)
    yield from _statistics(db)
    yield call("drop_database", db, False, True)


def _server(rng: random.Random) -> Iterator[Call]:
    names = ["hive.metastore.try.direct.sql", "metastore.batch.retrieve.max", "hive.exec.default.partition.name"]
    names += ["hive.absent", "absent", "mapred.x", "hdfs.x", "hive.metastore.uris.x", ""]
    for name in rng.sample(names, len(names)):
        yield call("get_config_value", name, "the default")
    for name in (
        "metastore.try.direct.sql",
        "hive.metastore.try.direct.sql",
        "absent",
        "metastore.partition.name.whitelist.pattern",
    ):
        yield call("getMetaConf", name)
    yield call("setMetaConf", "absent", "1")
    yield call("set_ugi", "ann", ["users"])
    yield call("set_ugi", "ann", [])
    yield call("getName")
    yield call("getStatus")
    yield call("getVersion")
    yield call("getOption", "absent")
    yield call("get_role_names")
    yield call("list_roles", "ann", 1)
    yield call("get_catalogs")
    yield call("get_catalog", ttypes.GetCatalogRequest("hive"))
    yield call("get_catalog", ttypes.GetCatalogRequest("absent"))
    yield call("get_all_token_identifiers")
    yield call("get_master_keys")
    yield call("get_delegation_token", "ann", "ann")


def _functions(db: str) -> Iterator[Call]:
    made = ttypes.Function("f", db, "a.B", "ann", 1, 1_700_000_000, 1, [ttypes.ResourceUri(1, "file:/x.jar")])
    yield call("get_functions", db, "*")
    yield call("create_function", made)
    yield call("create_function", made)
    yield call("get_function", db, "F")
    yield call("get_function", db, "absent")
    yield call("get_function", f"{db}_absent", "f")
    yield call("get_functions", db, "*")
    yield call("get_functions", db, "g*")
    yield call("get_functions", f"{db}_absent", "*")
    yield call("alter_function", db, "f", ttypes.Function("f", db, "a.C", "bob", 1, 1, 1, []))
    yield call("get_function", db, "f")
    yield call("create_function", ttypes.Function("g-1", db, "a.B", "ann", 1, 1, 1, []))
    yield call("create_function", ttypes.Function("g", f"{db}_absent", "a.B", "ann", 1, 1, 1, []))
    yield call("drop_function", db, "f")
    yield call("drop_function", db, "f")


def _statistics(db: str) -> Iterator[Call]:
    def of(level: bool, partition_name: str | None, name: str, table_name: str = "t") -> object:
        data = ttypes.ColumnStatisticsData(longStats=ttypes.LongColumnStatsData(1, 9, 0, 5))
        about = ttypes.ColumnStatisticsDesc(level, db, table_name, partition_name, 1_700_000_000)
        return ttypes.ColumnStatistics(about, [ttypes.ColumnStatisticsObj(name, "bigint", data)])

    yield call("get_table_column_statistics", db, "t", "id")
    yield call("update_table_column_statistics", of(True, None, "id"))
    yield call("get_table_column_statistics", db, "t", "id")
    yield call("get_table_column_statistics", db, "t", "ID")
    yield call("get_table_column_statistics", db, "t", "absent")
    yield call("get_table_column_statistics", db, "absent", "id")
    yield call("update_table_column_statistics", of(True, None, "absent"))
    yield call("update_table_column_statistics", of(True, None, "id", "absent"))
    yield call("update_table_column_statistics", of(True, None, "NAME"))
    yield call("get_table_column_statistics", db, "t", "name")
    yield call("get_table_statistics_req", ttypes.TableStatsRequest(db, "t", ["id", "Name"]))
    yield call("update_partition_column_statistics", of(False, "dt=a", "id"))
    yield call("update_partition_column_statistics", of(False, "dt=b", "Name"))
    yield call("get_partition_column_statistics", db, "t", "dt=b", "NAME")
    yield call("update_partition_column_statistics", of(False, "dt=absent", "id"))
    yield call("get_partition_column_statistics", db, "t", "dt=a", "id")
    yield call("get_partition_column_statistics", db, "t", "dt=b", "id")
    yield call("get_partition_column_statistics", db, "t", "dt=absent", "id")
    yield call("get_partitions_statistics_req", ttypes.PartitionsStatsRequest(db, "t", ["id"], ["dt=a", "dt=b"]))
    yield call("get_aggr_stats_for", ttypes.PartitionsStatsRequest(db, "t", ["id"], ["dt=a", "dt=b"]))
    yield call("delete_table_column_statistics", db, "t", "id", "hive")
    yield call("delete_table_column_statistics", db, "t", "id", "hive")
    yield call("get_table_column_statistics", db, "t", "id")
    yield call("delete_partition_column_statistics", db, "t", "dt=a", "id", "hive")
    yield call("get_primary_keys", ttypes.PrimaryKeysRequest(db, "t"))
    yield call("get_foreign_keys", ttypes.ForeignKeysRequest(db, "t", db, "t"))
    yield call("get_unique_constraints", ttypes.UniqueConstraintsRequest("hive", db, "t"))
    yield call("get_not_null_constraints", ttypes.NotNullConstraintsRequest("hive", db, "t"))
