"""Case 32: the binlog begins again without a word of the operator's: stop, and never treat new data as old."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.changes import ChangeBatch, SourceTable, TableSchema, ordering_value
from binlake.position.binlog_height import BinlogRestartedError, Heights, Stretch, climbed, stretch_of
from binlake.position.ledger import Ledger
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.lake import Lake
from hudilake.errors import BadInputError
from hudilake.storage import open_storage
from tests.binlake.stream.topic_log import COLUMNS, LocalEngine, TopicLog, event, services, settings
from tests.judges import hudi_rs

T0 = 1_760_000_000_000
TOPIC = "s.shop.a"


class World:
    """One table fed through one topic, by batches without Spark or Kafka."""

    def __init__(self, place: Path) -> None:
        self.place, self.log = place, TopicLog()
        self.config = settings(str(place), ["a"])
        self.start()

    def start(self) -> None:
        """A new process of the stream."""
        root = open_storage(str(self.place))
        state = root.sub(".binlake/shop")
        ledger = Ledger.load(state, "shop") or Ledger("shop")
        self.runner = BatchRunner(self.config, Lake(root), state, ledger, SchemaRegistry(self.config), services())

    def start_with(self, **source: object) -> None:
        """Start again as an operator does who has changed the settings' ``source`` section."""
        schemas = {"shop.a": {"columns": COLUMNS, "key": ["id"]}}
        self.config = settings(str(self.place), ["a"], source={"schemas": schemas, **source})
        self.start()

    def add(
        self,
        number: int,
        file: int,
        pos: int,
        second: int,
        owner: str,
        op: str = "u",
        partition: int = 0,
        server: int = 1,
    ) -> None:
        row = {"id": number, "owner": owner, "balance": "AfQ=", "region": "eu"}
        change = event("a", op, pos, row)
        change["source"] |= {"file": f"mysql-bin.{file:06}", "ts_ms": T0 + 1000 * second, "server_id": server}
        self.log.add(TOPIC, change, {"id": number}, partition)

    def batch(self) -> None:
        event = self.runner.run(0, self.log.end(), 0, LocalEngine(self.log))
        assert [t.error for t in event.tables if t.error] == []

    def owners(self) -> dict[int, str]:
        return {r["id"]: r["owner"] for r in hudi_rs.snapshot(f"{self.place}/shop/a").to_pylist()}


@pytest.fixture
def world(tmp_path: Path) -> World:
    here = World(tmp_path)
    here.add(1, 7, 400, 0, "old")
    here.add(2, 7, 500, 1, "old")
    here.batch()
    return here


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "after a stop"])
def test_new_data_at_old_places_stops_the_stream_and_a_new_epoch_takes_it_up(world: World, restarted: bool) -> None:
    if restarted:
        world.start()
    world.add(2, 7, 600, 2, "still old")
    world.add(1, 1, 157, 9, "new")
    world.add(2, 1, 300, 9, "new")
    with pytest.raises(BadInputError, match="binlog began again") as caught:
        world.batch()
    assert caught.value.where == {"topic": TOPIC, "partition": 0, "offset": 3}
    assert "source.epoch" in caught.value.do_next
    assert "file 7, position 600" in str(caught.value)
    assert world.owners() == {1: "old", 2: "still old"}, "all before is applied, and nothing after"
    with pytest.raises(BadInputError, match="binlog began again"):
        world.batch()
    world.start_with(epoch=1)
    world.batch()
    assert world.owners() == {1: "new", 2: "new"}
    world.add(1, 1, 400, 20, "newer")
    world.batch()
    assert world.owners() == {1: "newer", 2: "new"}


def test_a_replica_with_an_epoch_of_its_own_takes_over(world: World) -> None:
    world.start_with(epoch_of_server={2: 1})
    world.add(2, 7, 600, 2, "last of the old server")
    world.add(1, 3, 157, 9, "of the new server", server=2)
    world.add(2, 7, 600, 2, "last of the old server")  # delivered again: too old by now, and no restart
    world.batch()
    assert world.owners() == {1: "of the new server", 2: "last of the old server"}
    world.add(2, 3, 300, 10, "of the new server", server=2)
    world.batch()
    assert world.owners() == {1: "of the new server", 2: "of the new server"}


def test_a_replica_without_one_stops_the_stream(world: World) -> None:
    world.add(1, 3, 157, 9, "of the new server", server=2)
    with pytest.raises(BadInputError, match="binlog began again") as caught:
        world.batch()
    assert "epoch_of_server" in caught.value.do_next
    assert world.owners() == {1: "old", 2: "old"}


def test_what_a_killed_connector_delivers_again_is_no_restart(world: World) -> None:
    world.add(1, 7, 400, 0, "old")
    world.add(2, 7, 500, 1, "old")
    world.add(1, 7, 600, 2, "newest")
    world.batch()
    world.add(2, 7, 500, 1, "old")
    world.batch()
    assert world.owners() == {1: "newest", 2: "old"}


def test_a_snapshot_in_between_is_no_restart(world: World) -> None:
    world.add(3, 1, 4, 50, "read", op="r")
    world.batch()
    assert world.owners() == {1: "old", 2: "old", 3: "read"}


def test_each_partition_is_applied_up_to_its_own_restart(world: World) -> None:
    world.add(3, 7, 700, 3, "old", partition=1)
    world.add(3, 1, 100, 30, "new", partition=1)
    world.add(1, 7, 800, 4, "last of old")
    world.add(1, 1, 200, 31, "new")
    with pytest.raises(BadInputError, match="binlog began again"):
        world.batch()
    assert world.owners() == {1: "last of old", 2: "old", 3: "old"}
    world.start_with(epoch=1)
    world.batch()
    assert world.owners() == {1: "new", 2: "old", 3: "new"}


# -- the rule, against its plain statement --------------------------------------------------------------------------


def change_batch(orders: list[int], millis: list[int], first: int) -> ChangeBatch:
    n = len(orders)
    columns = {
        "__op": pa.array([0] * n, pa.int8()),
        "__order": pa.array(orders, pa.int64()),
        "__row": pa.array([0] * n, pa.int32()),
        "__partition": pa.array([0] * n, pa.int32()),
        "__offset": pa.array(range(first, first + n), pa.int64()),
        "__source_ms": pa.array(millis, pa.int64()),
    }
    schema = TableSchema(SourceTable("shop", "a"), (), ())
    return ChangeBatch(schema=schema, topic=TOPIC, rows=pa.record_batch(columns))


def plainly(events: list[tuple[int, int]]) -> bool:
    """Whether some change lies before an earlier one though its time is later than all before."""
    return any(
        order < max(o for o, _ in events[:i]) and ms > max(m for _, m in events[:i])
        for i, (order, ms) in enumerate(events)
        if i
    )


@given(
    moves=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=30),
    restart=st.none() | st.integers(0, 29),
    again=st.none() | st.tuples(st.integers(0, 29), st.integers(1, 8)),
    cuts=st.lists(st.integers(1, 29), max_size=4),
)
def test_stretches_tell_what_the_whole_tells(
    moves: list[tuple[int, int]], restart: int | None, again: tuple[int, int] | None, cuts: list[int]
) -> None:
    """However records are cut into tasks and batches: a delivery again is let through, a restart is seen."""
    position, second, file, events = 10, 0, 5, []
    for i, (bytes_on, seconds_on) in enumerate(moves):
        position, second = position + bytes_on, second + seconds_on
        if i == restart:
            file, position, second = 1, 4, second + 1
        events.append((ordering_value(0, file, position), T0 + second * 1000))
    if again is not None and again[0] < len(events):
        at = again[0]
        events[at + 1 : at + 1] = events[max(0, at - again[1]) : at + 1]
    edges = sorted({0, *(c for c in cuts if c < len(events)), len(events)})
    heights: Heights = {}
    seen = False
    for start, end in itertools.pairwise(edges):
        orders, millis = zip(*events[start:end], strict=True)
        stretch = stretch_of(change_batch(list(orders), list(millis), start), SourceTable("shop", "a"))
        assert stretch is not None
        try:
            heights = climbed(heights, [stretch])
        except BinlogRestartedError as error:
            offset = error.where["offset"]
            assert plainly(events[:end]), "no false alarm"
            assert start <= offset < end
            seen = True
            break
    assert seen == plainly(events)


def test_records_out_of_offset_order_are_put_in_order() -> None:
    made = change_batch([ordering_value(0, 5, p) for p in (30, 10, 20)], [T0 + 3, T0 + 1, T0 + 2], 0)
    shuffled = made.rows.set_column(4, "__offset", pa.array([2, 0, 1], pa.int64()))
    stretch = stretch_of(ChangeBatch(schema=made.schema, topic=TOPIC, rows=shuffled), SourceTable("shop", "a"))
    assert isinstance(stretch, Stretch)
    assert stretch.back is None
    assert stretch.millis == T0 + 3
