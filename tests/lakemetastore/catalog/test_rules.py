"""What is refused and what becomes of what is sent. The texts and values are answers of a Hive Metastore 3.1.3."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import msgspec
import pytest

from lakemetastore.catalog.catalog import Catalog
from lakemetastore.errors import (
    AlreadyExistsError,
    CatalogError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
    UnknownDatabaseError,
)
from lakemetastore.log.stores.opening import open_store
from lakemetastore.model import Column, Database, Partition, Storage, Table

STORAGE = Storage(columns=(Column("a", "int"),))
KEYS = (Column("dt", "string"), Column("n", "int"))
NULL = "__HIVE_DEFAULT_PARTITION__"
_numbers = count()


def table(name: str, database: str = "d", *, kind: str = "EXTERNAL_TABLE", external: str = "TRUE") -> Table:
    return Table(database, name, STORAGE, partition_keys=KEYS, parameters={"EXTERNAL": external}, kind=kind)


def part(*values: str) -> Partition:
    return Partition(values, STORAGE)


@pytest.fixture
def catalog() -> Catalog:
    """A database ``d`` with a table ``t`` that has two partitions, and a view ``v``."""
    catalog = Catalog(open_store(f"memory://rules/{next(_numbers)}"), warehouse="file:/w")
    catalog.databases.create(Database("D"))
    catalog.tables.create(table("t"))
    catalog.tables.create(Table("d", "v", Storage(), kind="VIRTUAL_VIEW"))
    catalog.partitions.add_all("d", "t", [part("x", "1"), part("y", "2")])
    return catalog


def changed(catalog: Catalog, **fields: object) -> Table:
    return msgspec.structs.replace(catalog.tables.get("d", "t").table, **fields)


REFUSALS: list[tuple[Callable[[Catalog], object], type[CatalogError], str]] = [
    (lambda c: c.databases.get("No"), NoSuchObjectError, "No"),
    (lambda c: c.databases.create(Database("D")), AlreadyExistsError, "Database D already exists"),
    (lambda c: c.databases.create(Database("a-b")), InvalidObjectError, "a-b is not a valid database name"),
    (lambda c: c.databases.alter("no", Database("no")), NoSuchObjectError, "no"),
    (lambda c: c.databases.drop("no"), NoSuchObjectError, "no"),
    (lambda c: c.databases.drop("Default"), MetaError, "Can not drop default database in catalog hive"),
    (
        lambda c: c.databases.drop("D"),
        InvalidOperationError,
        "Database d is not empty. One or more tables exist.",
    ),
    (lambda c: c.tables.get("d", "No"), NoSuchObjectError, "hive.d.No table not found"),
    (lambda c: c.tables.get("No", "x"), NoSuchObjectError, "hive.No.x table not found"),
    (lambda c: c.tables.drop("d", "no"), NoSuchObjectError, "hive.d.no table not found"),
    (lambda c: c.tables.drop("no", "t"), NoSuchObjectError, "no"),
    (lambda c: c.tables.named("no", ["t"]), UnknownDatabaseError, "Could not find database hive.no"),
    (lambda c: c.tables.create(table("T")), AlreadyExistsError, "Table hive.d.T already exists"),
    (lambda c: c.tables.create(table("x", "No")), InvalidObjectError, "No"),
    (lambda c: c.tables.create(table("a-b")), InvalidObjectError, "a-b is not a valid object name"),
    (
        lambda c: c.tables.create(Table("d", "x", Storage(columns=(Column("a", "integer"),)))),
        InvalidObjectError,
        "Invalid column type: integer",
    ),
    (
        lambda c: c.tables.create(Table("d", "x", STORAGE, partition_keys=(Column("a", "strin"),))),
        InvalidObjectError,
        "Invalid partition column type: strin",
    ),
    (lambda c: c.tables.alter("d", "No", table("No")), InvalidOperationError, "hive.d.No table not found"),
    (
        lambda c: c.tables.alter("d", "t", changed(c, name="V")),
        InvalidOperationError,
        "new table d.v already exists",
    ),
    (
        lambda c: c.tables.alter("d", "t", changed(c, database="no")),
        InvalidOperationError,
        "Unable to change partition or table. Check metastore logs for detailed stack.Database hive.no doesn't exist.",
    ),
    (
        lambda c: c.tables.alter("d", "t", changed(c, database="no", partition_keys=(), kind="x")),
        InvalidOperationError,
        "partition keys can not be changed.",
    ),
    (
        lambda c: c.tables.alter("d", "v", msgspec.structs.replace(c.tables.get("d", "v").table, database="No")),
        InvalidOperationError,
        "Unable to change partition or table. Check metastore logs for detailed stack.Database hive.No doesn't exist.",
    ),
    (
        lambda c: c.partitions.append("d", "t", ["x", "1"]),
        AlreadyExistsError,
        "Partition already exists:Partition(values:[x, 1], dbName:d, tableName:t)",
    ),
    (
        lambda c: c.tables.create(Table("d", "x", Storage(columns=(Column("a", "int"), Column("A", "int"))))),
        MetaError,
        "Add request failed : the column a is there twice",
    ),
    (
        lambda c: c.tables.alter("d", "t", changed(c, name="A-b")),
        InvalidOperationError,
        "a-b is not a valid object name",
    ),
    (
        lambda c: c.tables.alter("d", "t", changed(c, partition_keys=KEYS[:1])),
        InvalidOperationError,
        "partition keys can not be changed.",
    ),
    (
        lambda c: c.tables.alter("d", "t", changed(c, storage=Storage(columns=(Column("a", "boolean"),)))),
        InvalidOperationError,
        "The following columns have types incompatible with the existing columns in their respective positions :\na",
    ),
    (
        lambda c: c.partitions.add("d", "No", part("x")),
        InvalidObjectError,
        "Unable to add partition because table or database do not exist",
    ),
    (
        lambda c: c.partitions.add_all("d", "no", [part("x")]),
        InvalidObjectError,
        "Unable to add partitions because hive.d.no does not exist",
    ),
    (
        lambda c: c.partitions.add("d", "t", part("x")),
        MetaError,
        "Invalid partition key & values; keys [dt, n, ], values [x, ]",
    ),
    (
        lambda c: c.partitions.add("d", "t", part("x", "1")),
        AlreadyExistsError,
        "Partition already exists: Partition(values:[x, 1], dbName:d, tableName:t)",
    ),
    (
        lambda c: c.partitions.add_all("d", "t", [part("z", "1"), part("z", "1")]),
        MetaError,
        "java.io.IOException: Duplicate partitions in the list: Partition(values:[z, 1], dbName:d, tableName:t)",
    ),
    (
        lambda c: c.partitions.get(c.tables.get("d", "t"), ["no", "1"]),
        NoSuchObjectError,
        "partition values=[no, 1]",
    ),
    (
        lambda c: c.partitions.get(c.tables.get("d", "t"), ["no"]),
        MetaError,
        "Invalid partition key & values; keys [dt, n, ], values [no, ]",
    ),
    (
        lambda c: c.partitions.named(c.tables.get("d", "t"), "dt=x/n=66"),
        NoSuchObjectError,
        "partition values=[x, 66]",
    ),
    (
        lambda c: c.partitions.named(c.tables.get("d", "t"), "dt=x"),
        NoSuchObjectError,
        "incomplete partition name - missing n",
    ),
    (lambda c: c.partitions.named(c.tables.get("d", "t"), ""), MetaError, "Partition name is invalid. "),
    (
        lambda c: c.partitions.having(c.tables.get("d", "t"), ["x", "6", "7"]),
        MetaError,
        "Incorrect number of partition values. numPartKeys=2, part_val=[x, 6, 7]",
    ),
    (
        lambda c: c.partitions.having(c.tables.get("d", "t"), []),
        MetaError,
        "Invalid partition key & values; keys [], values []",
    ),
    (
        lambda c: c.partitions.alter("d", "t", part("z", "1")),
        InvalidOperationError,
        "alter is not possible: partition values=[z, 1]",
    ),
    (
        lambda c: c.partitions.alter_all("d", "t", [part("z", "1")]),
        InvalidOperationError,
        "Alter partition operation failed: NoSuchObjectException(message:partition values=[z, 1])",
    ),
    (
        lambda c: c.partitions.alter("d", "no", part("z", "1")),
        InvalidOperationError,
        "alter is not possible: Unable to alter partition because table or database does not exist.",
    ),
    (
        lambda c: c.partitions.rename("d", "t", ["x", "1"], part("y", "2")),
        InvalidOperationError,
        "Partition already exists:d.t.[y, 2]",
    ),
    (
        lambda c: c.partitions.rename("d", "t", ["z", "1"], part("y", "3")),
        InvalidOperationError,
        "Unable to rename partition because old partition does not exist",
    ),
    (
        lambda c: c.partitions.drop("d", "t", ["dt=z/n=1", "dt=x/n=1"]),
        NoSuchObjectError,
        "Some partitions to drop are missing",
    ),
]


@pytest.mark.parametrize(("call", "kind", "text"), REFUSALS)
def test_refusals_say_what_the_metastore_says_and_change_nothing(
    catalog: Catalog, call: Callable[[Catalog], object], kind: type[CatalogError], text: str
) -> None:
    before = catalog.tables.get("d", "t").version
    with pytest.raises(kind) as refused:
        call(catalog)
    assert refused.value.what == text
    assert catalog.tables.get("d", "t").version == before
    assert (catalog.databases.names(), catalog.tables.names("d"), catalog.tables.orphans(older_than_s=0)) == (
        ["d", "default"],
        ["t", "v"],
        [],
    )


@pytest.mark.parametrize(
    ("kind", "external", "stored"),
    [
        ("EXTERNAL_TABLE", "TRUE", "EXTERNAL_TABLE"),
        ("EXTERNAL_TABLE", "", "MANAGED_TABLE"),
        ("MANAGED_TABLE", "true", "EXTERNAL_TABLE"),
        ("MANAGED_TABLE", "FALSE", "MANAGED_TABLE"),
        ("VIRTUAL_VIEW", "TRUE", "VIRTUAL_VIEW"),
    ],
)
def test_the_kind_of_a_table_follows_its_parameter_external(
    catalog: Catalog, kind: str, external: str, stored: str
) -> None:
    assert catalog.tables.create(table("x", kind=kind, external=external)).table.kind == stored
    assert catalog.tables.like("d", "x", stored) == ["x"]


def test_names_patterns_kinds_and_comments_in_listings(catalog: Catalog) -> None:
    for name in ("t1", "T2", "other"):
        catalog.tables.create(table(name))
    listed = {"*": "other t t1 t2 v", "t*": "t t1 t2", "T1|t2": "t1 t2", ".*": "other t t1 t2 v", "t.": "t1 t2"}
    listed |= {"t_": "", "": "", "t1|": "t1", " t1": "t1", "%": "", "t.*": "t1 t2"}
    assert {pattern: catalog.tables.like("d", pattern) for pattern in listed} == {
        pattern: names.split() for pattern, names in listed.items()
    }
    assert catalog.tables.like("nodb", "*") == []
    assert catalog.databases.like("D|no*") == ["d"]
    assert catalog.databases.like("") == []
    altered = changed(catalog, parameters={"EXTERNAL": "FALSE", "comment": "words"})
    catalog.tables.alter("d", "t", altered)
    (summary,) = catalog.tables.summaries("d*", "t", ["MANAGED_TABLE"])
    assert (summary.database, summary.name, summary.comment) == ("d", "t", "words")
    assert [e.table.name for e in catalog.tables.named("D", ["t2", "T1", "no", "t2"])] == ["t1", "t2"]


def test_locations_times_and_owners_are_filled_in(catalog: Catalog) -> None:
    assert catalog.databases.get("d").location == "file:/w/d.db"
    assert catalog.databases.get("DEFAULT").location == "file:/w"
    stored = catalog.tables.get("d", "t").table
    assert (stored.location, stored.owner_type) == ("file:/w/d.db/t", 1)
    assert stored.parameters["transient_lastDdlTime"] == str(stored.created) != "0"
    assert catalog.tables.get("d", "v").table.location is None
    assert catalog.tables.create(table("x", "default")).table.location == "file:/w/x"
    first = catalog.tables.get("d", "t").partitions[0]
    assert (first.location, first.created >= stored.created) == ("file:/w/d.db/t/dt=x/n=1", True)
    elsewhere = msgspec.structs.replace(part("z", "3"), location="s3://b/z", parameters={"transient_lastDdlTime": "7"})
    added = catalog.partitions.add("d", "t", elsewhere)
    assert (added.location, added.parameters) == ("s3://b/z", {"transient_lastDdlTime": "7"})


def test_an_altered_table_keeps_its_creation_and_partitions_get_columns_by_cascade_only(catalog: Catalog) -> None:
    created = catalog.tables.get("d", "t").table.created
    wide = Storage(columns=(Column("a", "bigint"), Column("B", "string")))
    catalog.tables.alter("d", "t", changed(catalog, created=5, owner="o", storage=wide))
    altered = catalog.tables.get("d", "t")
    assert (altered.table.created, altered.table.owner) == (created, "o")
    assert [c.name for c in altered.table.storage.columns] == ["a", "b"]
    assert all(p.storage == STORAGE for p in altered.partitions)
    catalog.tables.alter("d", "t", altered.table, cascade=True)
    assert all(p.storage == STORAGE for p in catalog.tables.get("d", "t").partitions)
    wider = Storage(columns=(*wide.columns, Column("c", "int")))
    catalog.tables.alter("d", "t", changed(catalog, storage=wider), cascade=True)
    assert {len(p.storage.columns) for p in catalog.tables.get("d", "t").partitions} == {3}
    retyped = (Column("dt", "string", "c"), Column("n", "bigint"))
    catalog.tables.alter("d", "t", changed(catalog, partition_keys=retyped))
    entry = catalog.tables.get("d", "t")
    assert entry.partitions.names(catalog.partitions.matching(entry, "n > 1")) == ["dt=y/n=2"]


def test_a_table_renamed_into_another_database_keeps_its_partitions_and_its_location(catalog: Catalog) -> None:
    catalog.databases.create(Database("e"))
    before = catalog.tables.get("d", "t")
    catalog.tables.alter("d", "t", changed(catalog, database="E", name="New"))
    after = catalog.tables.get("e", "new")
    assert (after.id, after.table.location) == (before.id, before.table.location)
    assert (after.table.database, after.table.name) == ("e", "new")
    assert list(after.partitions) == list(before.partitions)
    assert not catalog.tables.has("d", "t")


def test_names_are_swapped_in_one_version_for_all_readers(catalog: Catalog) -> None:
    catalog.tables.create(table("u"))
    one, two = catalog.tables.get("d", "t").id, catalog.tables.get("d", "u").id
    catalog.tables.swap_names({("d", "t"): ("d", "u"), ("D", "U"): ("d", "T")})
    assert (catalog.tables.get("d", "u").id, catalog.tables.get("d", "t").id) == (one, two)
    assert catalog.tables.get("d", "u").table.name == "u"
    with pytest.raises(AlreadyExistsError):
        catalog.tables.swap_names({("d", "t"): ("d", "x"), ("d", "u"): ("d", "x")})
    with pytest.raises(AlreadyExistsError):
        catalog.tables.rename("d", "t", "d", "v")
    with pytest.raises(NoSuchObjectError):
        catalog.tables.swap_names({("d", "t"): ("d", "x"), ("d", "no"): ("d", "y")})
    with pytest.raises(InvalidObjectError):
        catalog.tables.rename("d", "t", "d", "a-b")
    assert catalog.tables.names("d") == ["t", "u", "v"]


def test_a_renamed_partition_keeps_its_location(catalog: Catalog) -> None:
    catalog.partitions.rename("d", "t", ["x", "1"], part("new", "1"))
    entry = catalog.tables.get("d", "t")
    assert entry.partitions.names() == ["dt=new/n=1", "dt=y/n=2"]
    assert entry.partitions[0].location == "file:/w/d.db/t/dt=x/n=1"


def test_partitions_with_some_values(catalog: Catalog) -> None:
    entry = catalog.tables.get("d", "t")
    catalog.partitions.add("d", "t", part("", "1"))
    assert entry.partitions.names(catalog.partitions.having(entry, ["x"])) == ["dt=x/n=1"]
    null = catalog.tables.get("d", "t")
    assert null.partitions.names(catalog.partitions.having(null, [NULL])) == [f"dt={NULL}/n=1"]
    assert catalog.partitions.get(null, [NULL, "1"]).values == (NULL, "1")
    assert catalog.partitions.get(null, ["", "1"]) is null.partitions[0]
    for values, names in {("x",): [0], ("", "2"): [1], ("x", ""): [0], ("no",): [], ("",): [0, 1]}.items():
        assert list(catalog.partitions.having(entry, values)) == names


def test_partitions_that_did_not_change_stay_the_same_objects_and_share_what_is_equal(catalog: Catalog) -> None:
    before = catalog.tables.get("d", "t").partitions
    equal = Storage(columns=(Column("a", "int"),))
    catalog.partitions.add_all("d", "t", [Partition((f"p{i}", "1"), equal) for i in range(3000)])
    after = catalog.tables.get("d", "t").partitions
    assert after.named("dt=x/n=1") is before[0]
    assert len({id(p.storage) for p in after}) == 1
    catalog.partitions.alter("d", "t", part("x", "1"))
    last = catalog.tables.get("d", "t").partitions
    assert sum(chunk not in after.chunks for chunk in last.chunks) == 1


def test_statistics_of_columns_live_as_long_as_what_they_describe(catalog: Catalog) -> None:
    catalog.statistics.put("d", "t", {"a": b"1", "b": b"2"})
    catalog.statistics.put("d", "t", {"a": b"3"}, "dt=x/n=1")
    entry = catalog.tables.get("d", "t")
    assert catalog.statistics.get(entry, ["a", "c"]) == {"a": b"1"}
    assert catalog.statistics.get(entry, ["a"], "dt=x/n=1") == {"a": b"3"}
    catalog.statistics.drop("d", "t", "a")
    catalog.partitions.drop("d", "t", ["dt=x/n=1"])
    entry = catalog.tables.get("d", "t")
    assert catalog.statistics.get(entry, ["a", "b"]) == {"b": b"2"}
    assert set(entry.statistics) == {""}
    with pytest.raises(NoSuchObjectError):
        catalog.statistics.put("d", "t", {"a": b"1"}, "dt=x/n=1")
    with pytest.raises(NoSuchObjectError):
        catalog.statistics.drop("d", "t", "a")


def test_statistics_end_with_the_type_of_their_column_and_follow_a_renamed_partition(catalog: Catalog) -> None:
    catalog.tables.alter(
        "d", "t", changed(catalog, storage=Storage(columns=(Column("a", "int"), Column("b", "int")))), cascade=True
    )
    for partition in ("", "dt=x/n=1", "dt=y/n=2"):
        catalog.statistics.put("d", "t", {"a": b"1", "b": b"2"}, partition)
    before = catalog.tables.get("d", "t").partitions[0]
    catalog.partitions.rename("d", "t", ["x", "1"], msgspec.structs.replace(before, values=("z", "1")))
    assert set(catalog.tables.get("d", "t").statistics) == {"", "dt=z/n=1", "dt=y/n=2"}
    wider = Storage(columns=(Column("a", "bigint"), Column("b", "int")))
    catalog.partitions.alter(
        "d", "t", msgspec.structs.replace(catalog.tables.get("d", "t").partitions[0], storage=wider)
    )
    assert catalog.tables.get("d", "t").statistics["dt=y/n=2"] == {"b": b"2"}
    catalog.tables.alter("d", "t", changed(catalog, storage=wider))
    assert set(map(tuple, catalog.tables.get("d", "t").statistics.values())) == {("b",)}
    catalog.partitions.add("d", "t", part("x", "1"))
    catalog.partitions.drop("d", "t", ["dt=z/n=1"])
    catalog.partitions.add("d", "t", part("z", "1"))
    assert set(catalog.tables.get("d", "t").statistics) == {"", "dt=y/n=2"}


def test_a_dropped_database_takes_its_tables_and_their_logs(catalog: Catalog) -> None:
    dropped = catalog.databases.drop("d", cascade=True)
    assert [(e.table.name, len(e.partitions)) for e in dropped] == [("t", 2), ("v", 0)]
    assert (catalog.databases.names(), catalog.tables.orphans(older_than_s=0)) == (["default"], [])
    catalog.databases.create(Database("d"))
    assert catalog.tables.names("d") == []


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("file:/a//b/", "file:/a/b"),
        ("file:///a/b", "file:/a/b"),
        ("file://h/a/b", "file:/a/b"),
        ("s3a://Bucket//x/", "s3a://Bucket/x"),
        ("hdfs://h:9/a b/%20", "hdfs://h:9/a b/%20"),
        ("s3a://bucket", "s3a://bucket"),
        ("file:/", "file:/"),
        ("/a//b/", "/a/b"),
        ("file:/a/./b/../c/", "file:/a/c"),
        ("s3a://bucket/a/../b", "s3a://bucket/b"),
        ("FILE:/a", "file:/a"),
    ],
)
def test_locations_are_stored_in_hadoops_form(catalog: Catalog, sent: str, stored: str) -> None:
    placed = msgspec.structs.replace(table("x"), location=sent)
    assert catalog.tables.create(placed).table.location == stored
    assert catalog.databases.create(Database("e", location=sent)).location == stored
    added = catalog.partitions.add("d", "x", msgspec.structs.replace(part("x", "1"), location=sent))
    assert added.location == stored


def test_a_directory_has_no_characters_that_separate_paths(catalog: Catalog) -> None:
    assert catalog.tables.create(table("A/b")).table.location == "file:/w/d.db/a-47-b"
