"""Plans by the metastore's state of a table: the same as by its metadata table, with fewer storage calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hudilake.read import TableReader
from hudilake.storage import open_storage
from lakemetastore.client.plans import ServicePlans
from lakemetastore.client.registration import register
from lakemetastore.client.requests import MetastoreClient
from lakemetastore.http.options import ServeOptions
from lakemetastore.http.state_index import state_index
from lakemetastore.lake.lake_tables import LakeTables
from lakemetastore.log.stores.opening import open_store
from tests.hudilake.read.lakes import Counting, new_table, random_table, row
from tests.lakemetastore.http.served import serving

CONDITIONS = (
    None,
    "part = 'p1'",
    "n > 2",
    "price >= 0.05 OR name LIKE 'n00%'",
    "id IN (3, 4)",
    "day > DATE '2024-01-02'",
)


def test_plans_are_the_same_by_the_state(tmp_path: Path) -> None:
    """While the state has the timeline of storage; otherwise the metadata table is read."""
    states = LakeTables(open_store(str(tmp_path / "store")))
    table = random_table(tmp_path / "t", 11)
    taken: list[str] = []

    def take_in(location: str, instant: str) -> None:
        taken.append(instant)
        states.take_in(open_storage(location))

    options = ServeOptions(states=states, register=take_in)
    with serving([open_storage(str(tmp_path))], options) as address:
        client = MetastoreClient(address)
        for number in range(3):
            table.write([row(key, 9 + number) for key in range(number + 1)])
            if number != 1:
                newest = table.table.timeline.completed()[-1].requested_time
                assert register(client, table.storage.uri, newest).seen
            reader = TableReader.open(table.storage)
            assert (state_index(reader.table, states) is not None) == (number != 1)
            for condition in CONDITIONS:
                expected = reader.plan(condition=condition)
                found = TableReader.open(table.storage, service=ServicePlans(client)).plan(condition=condition)
                assert replace(found, scan=expected.scan) == expected
    assert len(taken) == 2


def test_the_service_asks_storage_for_less(tmp_path: Path) -> None:
    """Its first plan of a table that it has not open: by the metadata table, and by the state."""
    table = new_table(tmp_path / "t")
    table.write([row(key, 1) for key in range(30)])
    states = LakeTables(open_store(str(tmp_path / "store")))
    states.take_in(table.storage)
    calls = []
    for options in (ServeOptions(), ServeOptions(states=states)):
        root = Counting(open_storage(str(tmp_path)))
        with serving([root], options) as address:
            reader = TableReader.open(table.storage, service=ServicePlans(MetastoreClient(address)))
            opened = len(root.calls)
            assert not reader.plan(condition="n > 3 AND id < 900").warnings
        calls.append(len(root.calls) - opened)
    print(f"storage calls of the service for a plan: {calls[0]} by the metadata table, {calls[1]} by the state")
    assert calls[1] <= 4 < calls[0]
