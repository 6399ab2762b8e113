"""Reads with the service find the same rows by the same steps as reads from storage, and ask storage for less."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from hudilake.read import Incremental, Query, ReadOptimized, Snapshot, TableReader
from hudilake.read.counting import CountRequest
from hudilake.read.filters.expressions import (
    And,
    Compare,
    Constant,
    Filter,
    In,
    IsNull,
    Not,
    Op,
    Or,
    StartsWith,
    Unknown,
    Value,
)
from hudilake.storage import open_storage
from lakemetastore.api.conditions import from_wire, to_wire
from lakemetastore.api.tables import PlanRequest
from lakemetastore.client.plans import ServicePlans
from lakemetastore.client.requests import MetastoreClient
from tests.hudilake.golden_kinds import extracted
from tests.hudilake.metadata.indexed_table import IndexedTable
from tests.hudilake.read.lakes import Counting, ids, new_table, random_table, row
from tests.lakemetastore.http.served import serving
from tests.paths import GOLDEN

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


@pytest.mark.full
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


@pytest.mark.first(3)
@pytest.mark.parametrize("kind", sorted(path.name.removesuffix(".tar.gz") for path in (GOLDEN / "kinds").glob("*.gz")))
def test_tables_of_hudi_of_every_kind(tmp_path: Path, address: str, kind: str) -> None:
    """The same plans and rows of the tables that Hudi Spark wrote."""
    root = extracted(kind, tmp_path).as_uri()
    alone, served = TableReader.open(root), TableReader.open(root, service=connected(address))
    for condition in (None, "id = 3", "id > 2"):
        expected, found = alone.plan(condition=condition), served.plan(condition=condition)
        assert replace(found, scan=expected.scan) == expected
        rows = pa.Table.from_batches(served.batches(found), found.scan.schema)
        assert rows.equals(pa.Table.from_batches(alone.batches(expected), expected.scan.schema))
    assert served.table.config == alone.table.config


def test_rows_that_are_counted(tmp_path: Path, address: str) -> None:
    table = new_table(tmp_path / "t")
    table.write([row(key, 1) for key in range(30)])
    table.compact()
    alone, served = TableReader.open(table.storage), TableReader.open(table.storage, service=connected(address))
    for condition in (None, "part = 'p1'", "id > 9"):
        assert served.count(condition=condition) == alone.count(condition=condition)
    wanted = CountRequest(("part",))
    expected, found = (one.plan(columns=["part"], counting=wanted) for one in (alone, served))
    assert found.counted == expected.counted != ()


def test_a_reader_sees_the_commits_of_others(tmp_path: Path, address: str) -> None:
    """A commit, another schema, and a table that was made anew, each in the next plan."""
    table = new_table(tmp_path / "t")
    table.write([row(1, 1)])
    reader = TableReader.open(table.storage, service=connected(address))
    assert not reader.refresh()
    table.write([row(2, 1)])
    assert reader.refresh()
    assert ids(reader, reader.plan()) == [1, 2]
    table.write([row(3, 1)])
    assert ids(reader, reader.plan()) == [1, 2, 3]


def test_conditions_cross_the_wire_unchanged() -> None:
    values: list[Value] = [True, -3, 2**70, 0.1, math.inf, Decimal("1.10"), "a'\0\U0001f600", b"\xff\0"]
    moment = datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC)
    values += [date(1, 1, 1), moment, moment.replace(tzinfo=None), time(1, 2, 3, 4)]
    parts: list[Filter] = [Compare("c", Op.LT, value) for value in values]
    parts += [In("c", tuple(values), negated=True), IsNull("c"), StartsWith("c", b"\xff"), Unknown("f(x)")]
    parts += [Not(Or(tuple(parts))), And(()), Constant(None)]
    for part in parts:
        request = PlanRequest(condition=to_wire(part))
        there = PlanRequest.model_validate_json(request.model_dump_json()).condition
        assert there is not None
        assert not isinstance(there, str)
        assert from_wire(there) == part
