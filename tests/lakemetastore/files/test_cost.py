"""What a call that deletes files costs: the catalog is not read anew for each table or partition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hive_metastore import ttypes

from lakemetastore.catalog.tables import Tables
from tests.lakemetastore.files.beside import our_side
from tests.lakemetastore.files.statements import Side

MARK = "cx"


def _table(name: str, keys: tuple[str, ...] = ()) -> ttypes.Table:
    columns = [ttypes.FieldSchema("id", "int", "")]
    return ttypes.Table(
        tableName=name,
        dbName=MARK,
        sd=ttypes.StorageDescriptor(cols=columns, serdeInfo=ttypes.SerDeInfo(parameters={}), parameters={}),
        partitionKeys=[ttypes.FieldSchema(key, "string", "") for key in keys],
        parameters={},
        tableType="MANAGED_TABLE",
    )


def _database_of_tables(side: Side, count: int) -> Callable[[], object]:
    for number in range(count):
        side.client.create_table(_table(f"t{number}"))
    return lambda: side.client.drop_database(MARK, True, True)


def _table_of_partitions(side: Side, count: int) -> Callable[[], object]:
    side.client.create_table(_table("t", ("p",)))
    side.client.create_table(_table("u", ("p", "q")))
    for number in range(count):
        side.client.append_partition(MARK, "t", [str(number)])
    names = ttypes.RequestPartsSpec(names=[f"p={number}" for number in range(count)])
    return lambda: side.client.drop_partitions_req(ttypes.DropPartitionsRequest(MARK, "t", names, deleteData=True))


def _partitions_of_another(side: Side, count: int) -> Callable[[], object]:
    for name in ("t", "u"):
        side.client.create_table(_table(name, ("p", "q")))
    for number in range(count):
        side.client.append_partition(MARK, "t", ["1", str(number)])
    return lambda: side.client.exchange_partitions({"p": "1"}, MARK, "t", MARK, "u")


@pytest.mark.first(1)
@pytest.mark.parametrize("prepared", [_database_of_tables, _table_of_partitions, _partitions_of_another])
def test_the_catalog_is_read_as_often_for_many_as_for_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepared: Callable[[Side, int], Callable[[], object]]
) -> None:
    reads: list[str] = []
    real = Tables.named

    def counted(tables: Tables, database: str, names: list[str]) -> object:
        reads.append(database)
        return real(tables, database, names)

    monkeypatch.setattr(Tables, "named", counted)
    found = []
    for count in (3, 30):
        place = tmp_path / str(count)
        with our_side(place, MARK) as side:
            side.client.create_database(ttypes.Database(MARK, "", None, {}))
            carried_out = prepared(side, count)
            reads.clear()
            carried_out()
            found.append(len(reads))
            assert not list(place.rglob("t0")) + list(place.rglob("t/*/*"))
    assert found[0] == found[1] > 0
