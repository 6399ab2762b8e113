"""The calls of the catalog; texts of errors are those that a Hive Metastore 3.1.3 gave."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakemetastore.catalog.catalog import Catalog
from lakemetastore.errors import AlreadyExistsError, NoSuchObjectError
from lakemetastore.log.stores.opening import open_store
from lakemetastore.model import Column, Database, Partition, Storage, Table

STORAGE = Storage(columns=(Column("A", "int"),))


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(open_store(str(tmp_path)), warehouse="s3://lake/warehouse")
    catalog.databases.create(Database("Db"))
    return catalog


def table(name: str, keys: tuple[str, ...] = ("dt", "n")) -> Table:
    columns = tuple(Column(key, "int" if key == "n" else "string") for key in keys)
    return Table("DB", name, STORAGE, partition_keys=columns, parameters={"EXTERNAL": "TRUE"})


def part(*values: str) -> Partition:
    return Partition(values, STORAGE)


def test_a_table_with_partitions_from_creation_to_drop(catalog: Catalog) -> None:
    created = catalog.tables.create(table("T1")).table
    assert (created.database, created.name, created.kind) == ("db", "t1", "EXTERNAL_TABLE")
    assert created.location == "s3://lake/warehouse/db.db/t1"
    assert created.storage.columns == (Column("a", "int"),)
    with pytest.raises(AlreadyExistsError, match=r"Table hive\.DB\.T1 already exists"):
        catalog.tables.create(table("T1"))
    catalog.partitions.add_all(
        "db", "T1", [part("x", "6"), part("2020-01-01", "5"), part("a/b=c%", "9"), part("", "8")]
    )
    entry = catalog.tables.get("DB", "t1")
    assert entry.partitions.names() == [
        "dt=2020-01-01/n=5",
        "dt=__HIVE_DEFAULT_PARTITION__/n=8",
        "dt=a%2Fb%3Dc%25/n=9",
        "dt=x/n=6",
    ]
    assert catalog.partitions.named(entry, "n=9/dt=a%2Fb%3Dc%25").values == ("a/b=c%", "9")
    assert entry.partitions[3].location == "s3://lake/warehouse/db.db/t1/dt=x/n=6"
    assert entry.partitions.names(catalog.partitions.matching(entry, "n > 5 and dt >= 'b'")) == ["dt=x/n=6"]
    assert [p.values for p in catalog.partitions.drop("db", "t1", ["dt=x/n=6"])] == [("x", "6")]
    assert len(catalog.tables.get("db", "t1").partitions) == 3
    catalog.tables.drop("db", "t1")
    with pytest.raises(NoSuchObjectError, match=r"hive\.db\.T1 table not found"):
        catalog.tables.get("db", "T1")
    assert not list(catalog.tables.names("db"))
