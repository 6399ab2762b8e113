"""Tables and partitions as clients send them."""

from __future__ import annotations

from hive_metastore import ttypes

from lakemetastore.hive.generated import Struct

DATABASE = "sales"


def storage(location: str | None = None) -> Struct:
    return ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema("id", "bigint", "the key"), ttypes.FieldSchema("name", "string", None)],
        location=location,
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdeInfo=ttypes.SerDeInfo("s", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {"field.delim": ","}),
        bucketCols=["id"],
        sortCols=[ttypes.Order("name", 0)],
        numBuckets=4,
        parameters={"sd": "1"},
    )


def table(name: str = "orders", *, keys: bool = True, location: str | None = None, **fields: Struct) -> Struct:
    partition_keys = [ttypes.FieldSchema("dt", "string", None), ttypes.FieldSchema("hour", "int", "of the day")]
    values = {"parameters": {"comment": "Bestellungen"}, "owner": "ann", **fields}
    return ttypes.Table(
        tableName=name,
        dbName=DATABASE,
        sd=storage(location),
        partitionKeys=partition_keys if keys else [],
        **values,
    )


def partition(*values: str, name: str = "orders", **fields: Struct) -> Struct:
    return ttypes.Partition(values=list(values), dbName=DATABASE, tableName=name, sd=storage(), **fields)


def filled(client: Struct, count: int = 6) -> None:
    """A database with the table ``orders`` and some partitions: dt=d0/hour=0, dt=d0/hour=1, dt=d1/hour=2, ..."""
    client.create_database(ttypes.Database(name=DATABASE, description="d", parameters={"k": "v"}))
    client.create_table(table())
    parts = [partition(f"d{i // 2}", str(i), parameters={"n": str(i)}) for i in range(count)]
    assert client.add_partitions(parts) == count
