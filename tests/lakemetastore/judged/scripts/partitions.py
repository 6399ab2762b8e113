"""Partitions: added, listed in all ways, changed, renamed, dropped; values and arguments that are right and wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hive_metastore import ttypes

from tests.lakemetastore.judged.calls import Call, call
from tests.lakemetastore.judged.objects import ODD_VALUES, columns, database, partition, storage, table

NULL = "__HIVE_DEFAULT_PARTITION__"


def script(prefix: str, rng: random.Random) -> Iterator[Call]:
    """The calls of a seed; the database's name begins with ``prefix``."""
    db = f"{prefix}_p"
    yield call("create_database", database(db))
    yield call("create_table", table(db, "one", columns("dt string")))
    yield call("create_table", table(db, "two", columns("dt string", "hr int")))
    yield call("create_table", table(db, "none"))
    yield from _added(db, rng)
    yield from _added_together(db)
    yield from _listed(db)
    yield from _by_prefix(db)
    yield from _by_name(db)
    yield from _changed(db)
    yield from _dropped(db)
    yield call("drop_database", db, False, True)


def _added(db: str, rng: random.Random) -> Iterator[Call]:
    values = [*ODD_VALUES, NULL, "a", "b", "10", "9"]
    for value in rng.sample(values, len(values)):
        yield call("add_partition", partition(db, "one", [value]))
        yield call("get_partition", db, "one", [value])
    for day, hour in (
        ("d1", "1"),
        ("d1", "01"),
        ("d1", "2"),
        ("d2", "10"),
        ("d2", NULL),
        (NULL, "1"),
        ("d3", "x"),
        ("d4", ""),
    ):
        yield call("add_partition", partition(db, "two", [day, hour]))
        yield call("get_partition", db, "two", [day, hour])
    for odd in (["a"], [], ["a", "b"], [""], ["tab\there"], ["\x01"], ["line\n"]):
        yield call("add_partition", partition(db, "one", odd))
    yield call("add_partition", partition(db, "one", ["no sd"], sd=None))
    yield call("add_partition", partition(db, "one", ["no place"], sd=storage(columns("id bigint"), None)))
    yield call("get_partition", db, "one", ["no place"])
    yield call("add_partition", partition(db, "one", ["no parameters"], parameters=None, createTime=0))
    yield call("get_partition", db, "one", ["no parameters"])
    yield call("add_partition", partition(db, "none", ["a"]))
    yield call("add_partition", partition(db, "absent", ["a"]))
    yield call("add_partition", partition(f"{db}_absent", "one", ["a"]))
    yield call("add_partition_with_environment_context", partition(db, "one", ["ctx"]), ttypes.EnvironmentContext())
    yield call("append_partition", db, "two", ["d5", "5"])
    yield call("append_partition", db, "two", ["d5", "5"])
    yield call("append_partition", db, "two", ["d5"])
    yield call("append_partition_by_name", db, "two", "dt=d6/hr=6")
    yield call("append_partition_by_name", db, "two", "hr=7/dt=d7")
    yield call("append_partition_by_name", db, "two", "dt=d8")
    yield call("append_partition_by_name", db, "two", "nothing")
    yield call("append_partition_by_name", db, "two", "dt=a%3Ab/hr=1")
    yield call("get_partition", db, "two", ["a:b", "1"])


def _added_together(db: str) -> Iterator[Call]:
    def many(name: str, *values: str) -> list[object]:
        return [partition(db, name, value.split("/")) for value in values]

    yield call("add_partitions", many("two", "m1/1", "m1/2"))
    yield call("add_partitions", many("two", "m1/3", "m1/2"))
    yield call("get_partition_names", db, "two", -1)
    yield call("add_partitions", many("two", "m2/1", "m2/1"))
    yield call("add_partitions", many("two", "m2/1", "m2"))
    yield call("add_partitions", [])
    yield call("add_partitions", [*many("two", "m3/1"), *many("one", "m3")])
    for exists, wanted in ((True, True), (False, True), (True, False), (False, False)):
        several = many("two", "m1/1", f"m4/{exists:d}{wanted:d}")
        request = ttypes.AddPartitionsRequest(db, "two", several, exists, wanted)
        yield call("add_partitions_req", request)
    for one in ([], many("two", "m5/1", "m5/1"), many("one", "m5")):
        yield call("add_partitions_req", ttypes.AddPartitionsRequest(db, "two", one, True, True))
    yield call("add_partitions_req", ttypes.AddPartitionsRequest(db, "absent", many("absent", "a"), True, True))
    yield call("add_partitions_req", ttypes.AddPartitionsRequest(db, "none", many("none", "a"), True, True))
    yield call("get_partition_names", db, "two", -1)


def _listed(db: str) -> Iterator[Call]:
    for name in ("one", "two", "none", "absent"):
        for limit in (-1, 0, 1, 3, 10000, -5):
            yield call("get_partitions", db, name, limit)
            yield call("get_partition_names", db, name, limit)
        yield call("get_partitions_with_auth", db, name, 2, "ann", ["users"])
        yield call("get_partitions_pspec", db, name, 2)
    yield call("get_partitions", f"{db}_absent", "one", -1)
    yield call("get_partition_names", f"{db}_absent", "one", -1)
    yield call("get_partitions", db.upper(), "ONE", 2)
    for value in (["a"], ["A"], ["absent"], [], ["a", "b"], [""]):
        yield call("get_partition", db, "one", value)
        yield call("get_partition_with_auth", db, "one", value, "ann", ["users"])
    yield call("get_partition", db, "absent", ["a"])
    yield call("get_partition", db, "none", ["a"])
    yield call("get_partition", f"{db}_absent", "one", ["a"])


def _by_prefix(db: str) -> Iterator[Call]:
    given: tuple[list[str], ...] = (
        ["d1"],
        ["d1", "1"],
        ["", "1"],
        ["", ""],
        [],
        ["d1", ""],
        ["absent"],
        ["d1", "1", "x"],
    )
    for values in (*given, [NULL], ["", NULL], ["D1"], ["d%"], ["a:b"]):
        for limit in (-1, 1, 0):
            yield call("get_partition_names_ps", db, "two", values, limit)
        yield call("get_partitions_ps", db, "two", values, -1)
        yield call("get_partitions_ps_with_auth", db, "two", values, 2, "ann", ["users"])
    for value in ("a b", "a/b", "a=b", "50%", "ümläut", "_", "."):
        yield call("get_partition_names_ps", db, "one", [value], -1)
        yield call("get_partitions_ps_with_auth", db, "one", [value], -1, "", [])
    for name in ("absent", "none"):
        yield call("get_partition_names_ps", db, name, ["a"], -1)
        yield call("get_partitions_ps_with_auth", db, name, ["a"], -1, "", [])


def _by_name(db: str) -> Iterator[Call]:
    texts = (
        "dt=a",
        "dt=A",
        "DT=a",
        "dt=absent",
        "a",
        "",
        "dt=",
        "dt=a/hr=1",
        "dt=a%20b",
        "dt=a b",
        "dt=a%2Fb",
        "dt=a/b",
    )
    for text in texts:
        yield call("get_partition_by_name", db, "one", text)
        yield call("partition_name_to_vals", text)
        yield call("partition_name_to_spec", text)
        yield call("partition_name_has_valid_characters", [text], False)
    yield call("get_partition_by_name", db, "two", "hr=1/dt=d1")
    yield call("get_partition_by_name", db, "absent", "dt=a")
    lists: tuple[list[str], ...] = (
        ["dt=a"],
        ["dt=b", "dt=a"],
        ["dt=a", "dt=absent"],
        ["dt=a", "dt=a"],
        [],
        ["a"],
        ["DT=a"],
    )
    for names in lists:
        yield call("get_partitions_by_names", db, "one", names)
    yield call("get_partitions_by_names", db, "two", ["dt=d2/hr=10", "dt=d1/hr=1", "hr=2/dt=d1"])
    yield call("get_partitions_by_names", db, "absent", ["dt=a"])
    yield call("get_partitions_by_names", db, "none", ["dt=a"])
    keys = columns("dt string", "hr int")
    request = ttypes.PartitionValuesRequest(dbName=db, tblName="two", partitionKeys=keys)
    yield call("get_partition_values", request)


def _changed(db: str) -> Iterator[Call]:
    other = {"parameters": {"k": "v"}, "createTime": 5, "lastAccessTime": 6}
    yield call("alter_partition", db, "one", partition(db, "one", ["a"], **other))
    yield call("get_partition", db, "one", ["a"])
    yield call("alter_partition", db, "one", partition(db, "one", ["absent"], **other))
    yield call("alter_partition", db, "absent", partition(db, "absent", ["a"], **other))
    yield call("alter_partition", db, "one", partition(db, "one", ["a", "b"], **other))
    context = ttypes.EnvironmentContext(properties={})
    yield call("alter_partition_with_environment_context", db, "one", partition(db, "one", ["b"], **other), context)
    several = [partition(db, "one", ["a"], lastAccessTime=8), partition(db, "one", ["b"], lastAccessTime=9)]
    yield call("alter_partitions", db, "one", several)
    yield call("get_partitions_by_names", db, "one", ["dt=a", "dt=b"])
    yield call("alter_partitions", db, "one", [*several, partition(db, "one", ["absent"])])
    yield call("alter_partitions", db, "one", [])
    yield call("alter_partitions", db, "one", [several[0], several[0]])
    yield call("alter_partitions_with_environment_context", db, "one", several, context)
    yield call("rename_partition", db, "one", ["a"], partition(db, "one", ["new name"]))
    yield call("get_partition", db, "one", ["new name"])
    yield call("get_partition", db, "one", ["a"])
    yield call("rename_partition", db, "one", ["new name"], partition(db, "one", ["b"]))
    yield call("rename_partition", db, "one", ["absent"], partition(db, "one", ["x"]))
    yield call("rename_partition", db, "one", ["b"], partition(db, "one", ["b"], lastAccessTime=3))
    yield call("rename_partition", db, "absent", ["b"], partition(db, "absent", ["b"]))
    yield call("rename_partition", db, "one", ["b"], partition(db, "one", ["x", "y"]))
    yield call("get_partition_names", db, "one", -1)


def _dropped(db: str) -> Iterator[Call]:
    yield call("drop_partition", db, "one", ["b"], False)
    yield call("drop_partition", db, "one", ["b"], False)
    yield call("drop_partition", db, "one", ["b", "c"], False)
    yield call("drop_partition", db, "one", [], False)
    yield call("drop_partition", db, "absent", ["b"], False)
    yield call("drop_partition_by_name", db, "one", "dt=a%2Fb", True)
    yield call("drop_partition_by_name", db, "one", "dt=absent", True)
    yield call("drop_partition_by_name", db, "one", "nothing", True)
    yield call("drop_partition_by_name", db, "absent", "dt=a", True)
    context = ttypes.EnvironmentContext(properties={})
    yield call("drop_partition_with_environment_context", db, "one", ["A"], True, context)
    yield call("drop_partition_by_name_with_environment_context", db, "one", "dt=9", True, context)
    for exists, names in ((False, ["dt=10", "dt=absent"]), (True, ["dt=10", "dt=absent"]), (False, []), (True, ["a"])):
        request = ttypes.DropPartitionsRequest(
            dbName=db, tblName="one", parts=ttypes.RequestPartsSpec(names=names), deleteData=False, ifExists=exists
        )
        yield call("drop_partitions_req", request)
    yield call("get_partition_names", db, "one", -1)
