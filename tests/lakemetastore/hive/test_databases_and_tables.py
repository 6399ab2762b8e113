"""Databases and tables over a real socket, with the generated client."""

from __future__ import annotations

import pytest
from hive_metastore import ttypes

from lakemetastore.hive.generated import Struct
from tests.lakemetastore.hive.clients import client
from tests.lakemetastore.hive.hive_server import HiveServer
from tests.lakemetastore.hive.samples import DATABASE, filled, storage, table


@pytest.fixture
def c(server: HiveServer) -> Struct:
    with client(server.address) as connected:
        yield connected


def test_databases(c: Struct) -> None:
    c.create_database(
        ttypes.Database(name="Sales", description="d", parameters={"k": "v"}, ownerName="ann", ownerType=1)
    )
    assert c.get_all_databases() == c.get_databases("*") == ["default", "sales"]
    assert c.get_databases("s*|x") == ["sales"]
    got = c.get_database("SALES")
    assert (got.name, got.description, got.parameters, got.ownerName, got.catalogName) == (
        "sales", "d", {"k": "v"}, "ann", "hive",
    )  # fmt: skip
    assert c.get_database("@hive#sales") == got
    newer = c.get_database_req(ttypes.GetDatabaseRequest("sales"))
    assert (newer.parameters, newer.type, newer.createTime > 0) == ({"k": "v"}, ttypes.DatabaseType.NATIVE, True)
    with pytest.raises(ttypes.NoSuchObjectException, match=r"database hive\.nope"):
        c.get_database_req(ttypes.GetDatabaseRequest("nope"))
    got.parameters = {"k": "w"}
    c.alter_database("sales", got)
    assert c.get_database("sales").parameters == {"k": "w"}
    with pytest.raises(ttypes.AlreadyExistsException):
        c.create_database(ttypes.Database(name="sales"))
    with pytest.raises(ttypes.NoSuchObjectException, match="nope"):
        c.get_database("nope")
    with pytest.raises(ttypes.NoSuchObjectException, match="No catalog other"):
        c.get_database("@other#sales")
    c.create_table(table(keys=False))
    with pytest.raises(ttypes.InvalidOperationException, match="not empty"):
        c.drop_database("sales", False, False)
    c.drop_database("sales", False, True)
    c.create_database(ttypes.Database(name="sales"))
    c.drop_database_req(ttypes.DropDatabaseRequest(name="sales", ignoreUnknownDb=False))
    with pytest.raises(ttypes.NoSuchObjectException, match=r"database hive\.sales"):
        c.drop_database_req(ttypes.DropDatabaseRequest(name="sales", ignoreUnknownDb=True))
    assert c.get_all_databases() == ["default"]


def test_catalogs(c: Struct) -> None:
    assert c.get_catalogs().names == ["hive"]
    assert c.get_catalog(ttypes.GetCatalogRequest("hive")).catalog.name == "hive"
    with pytest.raises(ttypes.NoSuchObjectException):
        c.get_catalog(ttypes.GetCatalogRequest("x"))


def test_a_table_comes_back_as_it_was_sent(c: Struct) -> None:
    filled(c)
    got = c.get_table(DATABASE, "ORDERS")
    assert (got.tableName, got.dbName, got.owner, got.tableType, got.catName) == (
        "orders", "sales", "ann", "MANAGED_TABLE", "hive",
    )  # fmt: skip
    assert got.sd.cols == storage().cols
    assert got.sd.serdeInfo == storage().serdeInfo
    assert (got.sd.bucketCols, got.sd.sortCols, got.sd.numBuckets) == (["id"], [ttypes.Order("name", 0)], 4)
    assert got.sd.location.endswith("/warehouse/sales.db/orders")
    assert [key.name for key in got.partitionKeys] == ["dt", "hour"]
    assert got.parameters["comment"] == "Bestellungen"
    assert got.createTime > 1_600_000_000
    assert c.get_table_req(ttypes.GetTableRequest(DATABASE, "orders")).table == got
    assert c.get_table_objects_by_name(DATABASE, ["nope", "orders"]) == [got]
    assert c.get_table_objects_by_name_req(ttypes.GetTablesRequest(DATABASE, ["orders"])).tables == [got]
    assert c.get_table_objects_by_name_req(ttypes.GetTablesRequest(DATABASE, tablesPattern="o*")).tables == [got]


def test_lists_of_tables(c: Struct) -> None:
    filled(c)
    c.create_table(table("orders_view", keys=False, tableType="VIRTUAL_VIEW", viewExpandedText="select 1"))
    assert c.get_all_tables(DATABASE) == c.get_tables(DATABASE, "*") == ["orders", "orders_view"]
    assert c.get_tables(DATABASE, "*view|x") == ["orders_view"]
    assert c.get_tables("nope", "*") == []
    assert c.get_tables_by_type(DATABASE, "*", "VIRTUAL_VIEW") == ["orders_view"]
    metas = c.get_table_meta("s*", "*", ["MANAGED_TABLE"])
    assert [(m.dbName, m.tableName, m.tableType, m.comments) for m in metas] == [
        ("sales", "orders", "MANAGED_TABLE", "Bestellungen")
    ]
    assert [t.tblName for t in c.get_tables_ext(ttypes.GetTablesExtRequest("hive", DATABASE, "*", 1, 1))] == ["orders"]
    assert c.get_materialized_views_for_rewriting(DATABASE) == []


def test_columns_and_keys(c: Struct) -> None:
    filled(c)
    columns, keys = storage().cols, table().partitionKeys
    assert c.get_fields(DATABASE, "orders") == columns
    assert c.get_fields_req(ttypes.GetFieldsRequest("hive", DATABASE, "orders")).fields == columns
    assert c.get_schema(DATABASE, "orders") == columns + keys
    assert c.get_schema_with_environment_context(DATABASE, "orders", None) == columns + keys
    assert c.get_schema_req(ttypes.GetSchemaRequest("hive", DATABASE, "orders")).fields == columns + keys
    with pytest.raises(ttypes.UnknownTableException, match=r"hive.sales.nope table not found"):
        c.get_fields(DATABASE, "nope")


def test_tables_are_altered_and_renamed(c: Struct) -> None:
    filled(c)
    new = c.get_table(DATABASE, "orders")
    new.sd.cols = [*new.sd.cols, ttypes.FieldSchema("more", "double", None)]
    c.alter_table(DATABASE, "orders", new)
    assert [column.name for column in c.get_table(DATABASE, "orders").sd.cols] == ["id", "name", "more"]
    assert len(c.get_partition(DATABASE, "orders", ["d0", "0"]).sd.cols) == 2
    new.sd.cols = [*new.sd.cols, ttypes.FieldSchema("most", "double", None)]
    c.alter_table_with_cascade(DATABASE, "orders", new, True)
    assert len(c.get_partition(DATABASE, "orders", ["d0", "0"]).sd.cols) == 4
    new.tableName = "invoices"
    c.alter_table_with_environment_context(DATABASE, "orders", new, ttypes.EnvironmentContext({"CASCADE": "true"}))
    assert c.get_all_tables(DATABASE) == ["invoices"]
    assert c.get_partitions(DATABASE, "invoices", 1)[0].tableName == "invoices"
    new.parameters["k"] = "v"
    c.alter_table_req(ttypes.AlterTableRequest("hive", DATABASE, "invoices", new))
    assert c.get_table(DATABASE, "invoices").parameters["k"] == "v"
    with pytest.raises(ttypes.InvalidOperationException, match=r"doesn't exist|not found"):
        c.alter_table(DATABASE, "orders", new)


def test_tables_with_constraints_are_refused(c: Struct) -> None:
    filled(c)
    key = ttypes.SQLPrimaryKey(table_db=DATABASE, table_name="t", column_name="id", key_seq=1, pk_name="pk")
    with pytest.raises(ttypes.MetaException, match="primaryKeys"):
        c.create_table_req(ttypes.CreateTableRequest(table("t"), primaryKeys=[key]))
    with pytest.raises(ttypes.MetaException, match="primaryKeys"):
        c.create_table_with_constraints(table("t"), [key], [], [], [], [], [])
    c.create_table_req(ttypes.CreateTableRequest(table("t")))
    c.create_table_with_constraints(table("t2"), [], [], [], [], [], [])
    assert c.get_all_tables(DATABASE) == ["orders", "t", "t2"]
    with pytest.raises(ttypes.AlreadyExistsException):
        c.create_table(table("t"))
    with pytest.raises(ttypes.InvalidObjectException, match="storage descriptor"):
        c.create_table(ttypes.Table(tableName="t3", dbName=DATABASE))
    no_constraints = c.get_all_table_constraints(ttypes.AllTableConstraintsRequest(DATABASE, "t", "hive"))
    assert no_constraints.allTableConstraints.primaryKeys == []


def test_statistics_come_back_as_they_were_sent(c: Struct) -> None:
    filled(c)
    data = ttypes.ColumnStatisticsData(longStats=ttypes.LongColumnStatsData(1, 5, 0, 3))
    sent = ttypes.ColumnStatisticsObj("ID", "bigint", data)
    kept = ttypes.ColumnStatisticsObj("id", "bigint", data)  # as a Hive Metastore 3.1.3 gives it (recorded)
    whole = ttypes.ColumnStatisticsDesc(isTblLevel=True, dbName=DATABASE, tableName="orders", lastAnalyzed=7)
    part = ttypes.ColumnStatisticsDesc(isTblLevel=False, dbName=DATABASE, tableName="orders", partName="dt=d0/hour=0")
    assert c.update_table_column_statistics(ttypes.ColumnStatistics(whole, [sent]))
    assert c.update_partition_column_statistics(ttypes.ColumnStatistics(part, [sent]))
    got = c.get_table_column_statistics(DATABASE, "orders", "id")
    assert got.statsObj == [kept]
    assert (got.statsDesc.lastAnalyzed, got.statsDesc.isTblLevel) == (7, True)
    assert c.get_partition_column_statistics(DATABASE, "orders", "dt=d0/hour=0", "id").statsObj == [kept]
    request = ttypes.TableStatsRequest(DATABASE, "orders", ["id", "name"])
    assert c.get_table_statistics_req(request).tableStats == [kept]
    asked = ttypes.PartitionsStatsRequest(DATABASE, "orders", ["id"], ["dt=d0/hour=0", "dt=d0/hour=1"])
    assert c.get_partitions_statistics_req(asked).partStats == {"dt=d0/hour=0": [kept]}
    aggregate = c.get_aggr_stats_for(asked)
    assert (aggregate.colStats, aggregate.partsFound) == ([kept], 1)
    asked.colNames = ["id", "name"]  # a real metastore counts partitions with statistics of all of them
    assert (c.get_aggr_stats_for(asked).colStats, c.get_aggr_stats_for(asked).partsFound) == ([kept], 0)
    assert c.delete_table_column_statistics(DATABASE, "orders", "id", None)
    assert c.get_table_statistics_req(request).tableStats == []
    assert c.delete_partition_column_statistics(DATABASE, "orders", "dt=d0/hour=0", "id", None)
    with pytest.raises(ttypes.NoSuchObjectException):
        c.delete_table_column_statistics(DATABASE, "orders", "id", None)


def _statistics(partition: str | None, *, level: bool = False) -> Struct:
    data = ttypes.ColumnStatisticsData(longStats=ttypes.LongColumnStatsData(1, 5, 0, 3))
    about = ttypes.ColumnStatisticsDesc(level, DATABASE, "orders", partition, 7)
    return ttypes.ColumnStatistics(about, [ttypes.ColumnStatisticsObj("id", "bigint", data)])


def test_a_call_about_a_partition_without_a_name_is_not_about_the_table(c: Struct) -> None:
    filled(c)
    assert c.update_table_column_statistics(_statistics(None, level=True))
    for name in ("", None):
        with pytest.raises(ttypes.MetaException, match="Partition name is invalid"):
            c.update_partition_column_statistics(_statistics(name))
        with pytest.raises(ttypes.MetaException, match="Partition name is invalid"):
            c.delete_partition_column_statistics(DATABASE, "orders", name, "id", None)
        with pytest.raises(ttypes.MetaException, match="Partition name is invalid"):
            c.get_partition_column_statistics(DATABASE, "orders", name, "id")
    assert c.get_table_column_statistics(DATABASE, "orders", "id").statsDesc.lastAnalyzed == 7
    assert c.delete_table_column_statistics(DATABASE, "orders", "ID", None)
    assert c.update_partition_column_statistics(_statistics("DT=d0/hour=0"))
    assert c.get_partition_column_statistics(DATABASE, "orders", "dt=d0/HOUR=0", "id").statsDesc.partName


@pytest.mark.parametrize("partition", [None, "dt=d0/hour=0"])
def test_statistics_of_new_rows_are_not_taken_for_those_of_all(c: Struct, partition: str | None) -> None:
    """With ``needMerge`` a client sends those of the rows that it has added: a real metastore puts them together."""
    filled(c)
    one = _statistics(partition, level=partition is None)
    request = ttypes.SetPartitionsStatsRequest([one], needMerge=False)
    asked = ttypes.TableStatsRequest(DATABASE, "orders", ["id"])
    parts = ttypes.PartitionsStatsRequest(DATABASE, "orders", ["id"], [partition or "dt=d0/hour=0"])

    def known() -> bool:
        if partition is None:
            return bool(c.get_table_statistics_req(asked).tableStats)
        return bool(c.get_partitions_statistics_req(parts).partStats)

    assert c.set_aggr_stats_for(request)
    assert known()
    for _ in range(2):
        assert c.set_aggr_stats_for(ttypes.SetPartitionsStatsRequest([one], needMerge=True))
        assert not known()
    assert c.set_aggr_stats_for(ttypes.SetPartitionsStatsRequest([one, one]))
    assert not known()


def test_functions(c: Struct) -> None:
    jar = ttypes.ResourceUri(ttypes.ResourceType.JAR, "file:/x.jar")
    c.create_function(ttypes.Function("F", "default", "org.X", "ann", 1, 0, 1, [jar]))
    got = c.get_function("default", "f")
    assert (got.functionName, got.className, got.resourceUris) == ("f", "org.X", [jar])
    assert c.get_functions("default", "*") == ["f"]
    got.className = "org.Y"
    c.alter_function("default", "f", got)
    assert [f.className for f in c.get_all_functions().functions] == ["org.Y"]
    with pytest.raises(ttypes.AlreadyExistsException):
        c.create_function(got)
    with pytest.raises(ttypes.NoSuchObjectException):
        c.create_function(ttypes.Function("g", "nope", "org.X", "ann", 1, 0, 1, []))
    c.drop_function("default", "f")
    with pytest.raises(ttypes.NoSuchObjectException, match=r"Function default.f does not exist"):
        c.get_function("default", "f")


def test_what_nobody_ever_puts(c: Struct) -> None:
    filled(c)
    thing = ttypes.HiveObjectRef(ttypes.HiveObjectType.TABLE, DATABASE, "orders", None, None)
    assert c.get_role_names() == ["admin", "public"]
    assert [role.roleName for role in c.list_roles("ann", ttypes.PrincipalType.USER)] == ["public"]
    granted = c.get_role_grants_for_principal(ttypes.GetRoleGrantsForPrincipalRequest("ann", 1))
    assert [grant.roleName for grant in granted.principalGrants] == ["public"]
    assert c.get_principals_in_role(ttypes.GetPrincipalsInRoleRequest("admin")).principalGrants == []
    assert c.get_privilege_set(thing, "ann", ["g"]).userPrivileges == {"ann": []}
    assert c.list_privileges("ann", 1, thing) == []
    assert c.get_primary_keys(ttypes.PrimaryKeysRequest(DATABASE, "orders")).primaryKeys == []
    assert c.get_foreign_keys(ttypes.ForeignKeysRequest(None, None, DATABASE, "orders")).foreignKeys == []
    assert c.get_unique_constraints(ttypes.UniqueConstraintsRequest("hive", DATABASE, "orders")).uniqueConstraints == []
    asked = ttypes.NotNullConstraintsRequest("hive", DATABASE, "orders")
    assert c.get_not_null_constraints(asked).notNullConstraints == []
    assert (
        c.get_default_constraints(ttypes.DefaultConstraintsRequest("hive", DATABASE, "orders")).defaultConstraints == []
    )
    assert c.get_check_constraints(ttypes.CheckConstraintsRequest("hive", DATABASE, "orders")).checkConstraints == []
    assert c.get_current_notificationEventId().eventId == 0
    assert c.get_next_notification(ttypes.NotificationEventRequest(0, 10)).events == []
    assert c.get_notification_events_count(ttypes.NotificationEventsCountRequest(0, DATABASE)).eventsCount == 0
    assert c.get_open_txns().open_txns == []
    assert c.get_dataconnectors() == []
