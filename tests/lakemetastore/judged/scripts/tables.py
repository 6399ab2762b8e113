"""Tables: made, changed, renamed, listed, dropped; names and arguments that are right and wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hive_metastore import ttypes

from tests.lakemetastore.judged.calls import Call, call
from tests.lakemetastore.judged.objects import PLACE, columns, database, partition, random_columns, storage, table

_NAMES = (
    "t1",
    "T2",
    "orders_ro",
    "orders_rt",
    "orders",
    "a1",
    "tbl_ünï",
    "with-dash",
    "with.dot",
    "with blank",
    "",
    "9",
)


def script(prefix: str, rng: random.Random) -> Iterator[Call]:
    """The calls of a seed; the databases' names begin with ``prefix``."""
    db, other = f"{prefix}_d", f"{prefix}_e"
    yield call("create_database", database(db))
    yield call("create_database", database(other))
    for name in _NAMES:
        cols = random_columns(rng)
        keys = columns("dt string", "hr int")[: rng.randint(0, 2)]
        yield call("create_table", table(db, name, keys, cols))
        yield call("get_table", db, name)
    yield from _odd(db)
    yield from _read(db, prefix)
    yield from _listed(db, prefix)
    yield from _changed(db, other, rng)
    yield from _cascaded(db)
    yield from _dropped(db)
    yield call("drop_database", db, False, True)
    yield call("drop_database", other, False, True)


def _odd(db: str) -> Iterator[Call]:
    """Tables that lack something or have too much."""
    where = f"{PLACE}/odd"
    made = [
        table(db, "t1"),
        table(db.upper(), "T1"),
        table(f"{db}_absent", "x"),
        table(db, "no_columns", cols=[]),
        table(db, "twice", cols=columns("a int", "A string")),
        table(db, "twice_key", columns("id string"), columns("id bigint")),
        table(db, "empty_name", cols=columns(" int")),
        table(db, "bad_type", cols=columns("a nothing")),
        table(db, "bad_key_type", columns("k nothing")),
        table(db, "complex_key", columns("k array<int>")),
        table(db, "odd_column", cols=columns("a-b int", "ü string", "a b int", "UPPER int")),
        table(db, "no_serde", sd=ttypes.StorageDescriptor(cols=columns("a int"), location=where)),
        table(db, "no_sd", sd=None),
        table(db, "no_place", sd=storage(columns("a int"), None)),
        table(db, "empty_place", sd=storage(columns("a int"), "")),
        table(db, "no_parameters", parameters=None),
        table(db, "no_kind", tableType=None),
        table(db, "no_owner", owner=None, ownerType=None),
        table(db, "role_owner", owner="r", ownerType=2),
        table(db, "own_kind", tableType="OTHER"),
        table(db, "managed_kind_external", tableType="MANAGED_TABLE"),
        table(db, "external_without_word", parameters={}),
        table(db, "view", tableType="VIRTUAL_VIEW", viewOriginalText="select 1", viewExpandedText="select 1 as a"),
        table(db, "view_no_place", sd=storage(columns("a int"), None), tableType="VIRTUAL_VIEW", viewOriginalText="s"),
        table(db, "words", parameters={"comment": "ü comment", "EXTERNAL": "TRUE", "empty": "", "k": "x" * 3000}),
        table(db, "null_value", parameters={"EXTERNAL": "TRUE", "comment": "NULL"}),
        table(db, "time", createTime=0, lastAccessTime=17, retention=3),
    ]
    for one in made:
        yield call("create_table", one)
        yield call("get_table", one.dbName, one.tableName)
    # 3.1.3 cannot send the summaries of tables without a kind.
    yield call("drop_table", db, "no_kind", False)
    context = ttypes.EnvironmentContext(properties={"k": "v"})
    yield call("create_table_with_environment_context", table(db, "ctx"), context)
    yield call("create_table_with_environment_context", table(db, "ctx"), context)


def _read(db: str, prefix: str) -> Iterator[Call]:
    for name in ("T1", "absent", "", " t1"):
        yield call("get_table", db, name)
        yield call("get_fields", db, name)
        yield call("get_schema", db, name)
        yield call("get_schema_with_environment_context", db, name, ttypes.EnvironmentContext(properties={}))
    for name in ("t2", "orders_rt", "view", "no_columns"):
        yield call("get_schema", db, name)
    yield call("get_table", f"{prefix}_absent", "t1")
    yield call("get_table", db.upper(), "ORDERS")
    yield call("get_fields", f"{prefix}_absent", "t1")
    for names in (["orders", "t1"], ["T1", "absent"], [], ["t1", "t1"], ["a1", "orders", "t2"]):
        yield call("get_table_objects_by_name", db, names)
    yield call("get_table_objects_by_name", f"{prefix}_absent", ["t1"])
    yield call("get_table_objects_by_name", "", ["t1"])
    yield call("get_table_req", ttypes.GetTableRequest(dbName=db, tblName="t1"))
    yield call("get_table_req", ttypes.GetTableRequest(dbName=db, tblName="absent"))
    yield call("get_table_req", ttypes.GetTableRequest(dbName=f"{prefix}_absent", tblName="t1"))
    yield call("get_table_objects_by_name_req", ttypes.GetTablesRequest(dbName=db, tblNames=["t1", "orders"]))


def _listed(db: str, prefix: str) -> Iterator[Call]:
    yield call("get_all_tables", db)
    yield call("get_all_tables", f"{prefix}_absent")
    for pattern in (
        "*",
        "t*",
        "orders*",
        "orders_r*|t1",
        "ORDERS",
        "absent",
        "",
        "*o*",
        "t?",
        "t.",
        "t1|",
        "*_rt|*_ro",
    ):
        yield call("get_tables", db, pattern)
        yield call("get_table_meta", db, pattern, [])
    yield call("get_tables", db.upper(), "t1")
    yield call("get_tables", f"{prefix}_absent", "*")
    for kind in ("EXTERNAL_TABLE", "MANAGED_TABLE", "VIRTUAL_VIEW", "external_table", "NOTHING", ""):
        yield call("get_tables_by_type", db, "*", kind)
        yield call("get_table_meta", db, "*", [kind])
    yield call("get_table_meta", f"{prefix}*", "t*", ["EXTERNAL_TABLE", "VIRTUAL_VIEW"])
    yield call("get_table_meta", f"{prefix}_absent", "*", [])
    yield call("get_table_names_by_filter", db, 'hive_filter_field_owner__ = "ann"', -1)
    yield call("get_table_names_by_filter", db, 'hive_filter_field_params__k like "x%"', 2)


def _changed(db: str, other: str, rng: random.Random) -> Iterator[Call]:
    context = ttypes.EnvironmentContext(properties={})
    yield call("create_table", table(db, "plain"))
    yield call("alter_table", db, "plain", table(db, "plain", parameters={"EXTERNAL": "TRUE", "added": "1"}))
    yield call("get_table", db, "plain")
    wide = columns("id bigint", "name string", "more map<string,int>")
    yield call("alter_table_with_environment_context", db, "PLAIN", table(db, "Plain", cols=wide), context)
    yield call("get_table", db, "plain")
    for cols in (columns("id int"), columns("name string", "id bigint"), columns("id string"), random_columns(rng), []):
        yield call("alter_table", db, "plain", table(db, "plain", cols=cols))
        yield call("get_fields", db, "plain")
    yield from _refused(db)
    yield from _renamed(db, other)


def _refused(db: str) -> Iterator[Call]:
    yield call("alter_table", db, "absent", table(db, "absent"))
    yield call("alter_table", f"{db}_absent", "plain", table(f"{db}_absent", "plain"))
    yield call("alter_table", db, "plain", table(db, "bad-name"))
    yield call("alter_table", db, "plain", table(db, "plain", cols=columns("a nothing")))
    yield call("alter_table", db, "plain", table(db, "plain", columns("dt string")))
    yield call("alter_table", db, "plain", table(db, "orders"))
    yield call("alter_table", db, "plain", table(db, "ORDERS"))


def _renamed(db: str, other: str) -> Iterator[Call]:
    yield call("create_table", table(db, "named"))
    yield call("alter_table", db, "named", table(db, "Renamed"))
    yield call("get_table", db, "renamed")
    yield call("get_table", db, "named")
    yield call("alter_table", db, "renamed", table(other, "moved"))
    yield call("get_table", other, "moved")
    yield call("alter_table", other, "moved", table(f"{db}_absent", "moved"))
    yield call("alter_table", other, "moved", table(other, "MOVED", owner="bob", retention=7, lastAccessTime=9))
    yield call("get_table", other, "moved")
    yield call("alter_table", other, "moved", table(other, "moved", tableType="MANAGED_TABLE", parameters={}))
    yield call("get_table", other, "moved")
    yield call("alter_table", other, "moved", table(other, "moved", sd=None))


def _cascaded(db: str) -> Iterator[Call]:
    keys = columns("dt string")
    yield call("create_table", table(db, "casc", keys))
    yield call("add_partition", partition(db, "casc", ["a"]))
    yield call("add_partition", partition(db, "casc", ["b"]))
    wide = columns("id bigint", "name string", "more int")
    yield call("alter_table", db, "casc", table(db, "casc", keys, wide))
    yield call("get_partition", db, "casc", ["a"])
    yield call("alter_table_with_cascade", db, "casc", table(db, "casc", keys, wide), True)
    yield call("get_partition", db, "casc", ["a"])
    wider = [*wide, *columns("last date")]
    context = ttypes.EnvironmentContext(properties={"CASCADE": "true"})
    yield call("alter_table_with_environment_context", db, "casc", table(db, "casc", keys, wider), context)
    yield call("get_partition", db, "casc", ["b"])
    yield call("alter_table", db, "casc", table(db, "casc", columns("dt int"), wide))
    yield call("alter_table", db, "casc", table(db, "casc", columns("day string"), wide))
    yield call("alter_table", db, "casc", table(db, "casc", [], wide))
    yield call("get_table", db, "casc")
    yield call("alter_table", db, "casc", table(db, "casc2", keys, wide))
    yield call("get_partition_names", db, "casc2", -1)
    yield call("get_partition", db, "casc2", ["a"])
    yield call("get_partition_names", db, "casc", -1)


def _dropped(db: str) -> Iterator[Call]:
    yield call("drop_table", db, "t2", False)
    yield call("get_table", db, "t2")
    yield call("drop_table", db, "t2", False)
    yield call("drop_table", f"{db}_absent", "t2", False)
    yield call("drop_table", db.upper(), "CASC2", True)
    yield call("get_partitions", db, "casc2", -1)
    yield call("drop_table_with_environment_context", db, "view", True, ttypes.EnvironmentContext(properties={}))
    yield call("drop_table", db, "", False)
    yield call("create_table", table(db, "t2"))
    yield call("get_all_tables", db)
