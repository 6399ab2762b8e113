"""Reads with the service find the same rows by the same steps as reads from storage, and ask storage for less."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.hudi.read import Incremental, Query, ReadOptimized, Snapshot, TableReader
from pipeline.metastore.client.plans import ServicePlans
from pipeline.metastore.client.requests import MetastoreClient
from pipeline.storage import open_storage
from tests.hudi.metadata.indexed_table import IndexedTable
from tests.hudi.read.lakes import Counting, ids, new_table, random_table, row
from tests.metastore.http.served import serving

CONDITIONS = [
    None,
    "n > 3 AND id IN (3, 4)",
    "part = 'p1'",
    "price >= 1.25 OR name LIKE 'n00%'",
    "day > DATE '2024-01-09'",
]


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with serving([open_storage(str(tmp_path))]) as found:
        yield found


def connected(address: str) -> ServicePlans:
    return ServicePlans(MetastoreClient(address))


def table_in(path: Path) -> IndexedTable:
    table = random_table(path / "t", 7)
    table.write([row(1, 9), row(100, 9)])
    return table


def queries(table: IndexedTable) -> list[Query]:
    times = [instant.requested_time for instant in table.table.timeline.completed()]
    return [Snapshot(), Snapshot(times[2]), ReadOptimized(), Incremental(times[1]), Incremental("", times[4])]


def test_plans_are_the_same_with_the_service(tmp_path: Path, address: str) -> None:
    table = table_in(tmp_path)
    storage = str(tmp_path / "t")
    for query in queries(table):
        for condition in CONDITIONS:
            for count_all in (False, True):
                alone, served = TableReader.open(storage), TableReader.open(storage, service=connected(address))
                expected = alone.plan(query, condition, ["id"], count_all)
                found = served.plan(query, condition, ["id"], count_all)
                assert replace(found, scan=expected.scan) == expected
                assert ids(served, found) == ids(alone, expected)


def test_a_plan_of_the_service_asks_storage_for_nothing(tmp_path: Path, address: str) -> None:
    table = new_table(tmp_path / "t")
    table.write([row(key, 1) for key in range(30)])
    alone, served = Counting(table.storage), Counting(table.storage)
    TableReader.open(alone).plan(condition="n > 3 AND id < 900")
    TableReader.open(served, service=connected(address)).plan(condition="n > 3 AND id < 900")
    print(f"storage calls of opening and planning: {len(alone.calls)} alone, {len(served.calls)} with the service")
    assert served.calls == []
    assert len(alone.calls) > 10
