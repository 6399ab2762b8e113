"""The calls of Hive 4 that take one request structure, as its clients send them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from hive_metastore import ttypes

from tests.lakemetastore.judged.calls import Call, call
from tests.lakemetastore.judged.objects import columns, database, partition, table

_FILTERS = (
    'dt = "a"',
    'dt > "a" and hr = 1',
    'dt like "a%"',
    '(dt) in ("a", "b")',
    "hr between 1 and 2",
    "dt =",
    'x = "a"',
    "hr != 1",
    "",
)


def script(prefix: str, rng: random.Random) -> Iterator[Call]:
    """The calls of a seed; the database's name begins with ``prefix``."""
    db = f"{prefix}_r"
    yield call("create_database", database(db))
    for name in (db, db.upper(), f"{prefix}_absent"):
        yield call("get_database_req", ttypes.GetDatabaseRequest(name=name, catalogName="hive"))
    yield call("create_table_req", ttypes.CreateTableRequest(table=table(db, "t", columns("dt string", "hr int"))))
    yield call("create_table_req", ttypes.CreateTableRequest(table=table(db, "t", columns("dt string", "hr int"))))
    yield call("create_table_req", ttypes.CreateTableRequest(table=table(db, "u")))
    yield call("create_table_req", ttypes.CreateTableRequest(table=table(f"{prefix}_absent", "u")))
    yield from _tables(db, prefix)
    yield from _added(db, rng)
    yield from _read(db)
    yield from _by_filter(db)
    yield from _changed(db)
    yield call("drop_database_req", ttypes.DropDatabaseRequest(db, "hive", False, False, False))
    yield call("drop_database_req", ttypes.DropDatabaseRequest(db, "hive", False, False, True))
    yield call("drop_database_req", ttypes.DropDatabaseRequest(db, "hive", False, False, True))
    yield call("drop_database_req", ttypes.DropDatabaseRequest(db, "hive", True, False, True))


def _tables(db: str, prefix: str) -> Iterator[Call]:
    for schema, name in ((db, "t"), (db, "T"), (db, "absent"), (f"{prefix}_absent", "t")):
        yield call("get_table_req", ttypes.GetTableRequest(dbName=schema, tblName=name, catName="hive"))
        fields = ttypes.GetFieldsRequest(catName="hive", dbName=schema, tblName=name)
        yield call("get_fields_req", fields)
        yield call("get_schema_req", ttypes.GetSchemaRequest(catName="hive", dbName=schema, tblName=name))
    for names in (["t", "u"], ["absent"], [], ["U"]):
        request = ttypes.GetTablesRequest(dbName=db, tblNames=names, catName="hive")
        yield call("get_table_objects_by_name_req", request)


def _request(db: str, kind: Any, **fields: Any) -> Any:  # noqa: ANN401 - generated classes have no types
    return kind(dbName=db, catName="hive", **fields)


def _added(db: str, rng: random.Random) -> Iterator[Call]:
    pairs = [(day, hour) for day in ("a", "ab", "b", "c/d") for hour in ("1", "2")]
    several = [partition(db, "t", pair) for pair in rng.sample(pairs, len(pairs))]
    for exists in (True, False):
        yield call("add_partitions_req", ttypes.AddPartitionsRequest(db, "t", several, exists, True, catName="hive"))
    yield call("add_partitions_req", ttypes.AddPartitionsRequest(db, "absent", several, True, True, catName="hive"))


def _read(db: str) -> Iterator[Call]:
    for name in ("t", "u", "absent"):
        for limit in (-1, 2, 0):
            asked = _request(db, ttypes.PartitionsRequest, tblName=name, maxParts=limit)
            yield call("get_partitions_req", asked)
        for values in (["a", "1"], ["a"], ["z", "1"], []):
            yield call("get_partition_req", _request(db, ttypes.GetPartitionRequest, tblName=name, partVals=values))
            asked = _request(db, ttypes.GetPartitionNamesPsRequest, tblName=name, partValues=values, maxParts=-1)
            yield call("get_partition_names_ps_req", asked)
            asked = _request(db, ttypes.GetPartitionsPsWithAuthRequest, tblName=name, partVals=values, maxParts=-1)
            yield call("get_partitions_ps_with_auth_req", asked)
    for names in (["dt=a/hr=1", "dt=b/hr=2"], ["dt=z/hr=1"], [], ["dt=c%2Fd/hr=1"], ["a"]):
        asked = ttypes.GetPartitionsByNamesRequest(db_name=db, tbl_name="t", names=names)
        yield call("get_partitions_by_names_req", asked)
    asked = ttypes.GetPartitionsByNamesRequest(db_name=db, tbl_name="absent", names=["dt=a/hr=1"])
    yield call("get_partitions_by_names_req", asked)


def _by_filter(db: str) -> Iterator[Call]:
    for text in _FILTERS:
        for limit in (-1, 1):
            yield call("get_partitions_by_filter", db, "t", text, limit)
        yield call("get_num_partitions_by_filter", db, "t", text)


def _changed(db: str) -> Iterator[Call]:
    wide = table(db, "u", cols=columns("id bigint", "name string", "more int"))
    yield call("alter_table_req", _request(db, ttypes.AlterTableRequest, tableName="u", table=wide))
    yield call("get_table_req", ttypes.GetTableRequest(dbName=db, tblName="u", catName="hive"))
    yield call("alter_table_req", _request(db, ttypes.AlterTableRequest, tableName="absent", table=wide))
    changed = [partition(db, "t", ["a", "1"], lastAccessTime=5)]
    yield call("alter_partitions_req", _request(db, ttypes.AlterPartitionsRequest, tableName="t", partitions=changed))
    absent = [partition(db, "t", ["z", "1"])]
    yield call("alter_partitions_req", _request(db, ttypes.AlterPartitionsRequest, tableName="t", partitions=absent))
    new = partition(db, "t", ["new", "1"])
    renamed = _request(db, ttypes.RenamePartitionRequest, tableName="t", partVals=["a", "1"], newPart=new)
    yield call("rename_partition_req", renamed)
    yield call("rename_partition_req", renamed)
    yield call("get_partition_names", db, "t", -1)
    for exists in (True, False):
        parts = ttypes.RequestPartsSpec(names=["dt=b/hr=1", "dt=z/hr=1"])
        dropped = _request(
            db,
            ttypes.DropPartitionsRequest,
            tblName="t",
            parts=parts,
            deleteData=False,
            ifExists=exists,
            needResult=True,
        )
        yield call("drop_partitions_req", dropped)
    yield call("get_partition_names", db, "t", -1)
