"""Tables that are paused, stopped and fetched anew while the others go on, without Spark or Kafka.

The source is a model with a binlog. Rows get lost, changed or added in the lake alone by events that the model knows
nothing of, or by changes of the model that no event tells.
"""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from binlake.decode.changes import SourceTable, ordering_value
from binlake.position.held_tables import Resync, ResyncStep
from binlake.position.ledger import Ledger
from binlake.position.table_requests import ResyncRequest, TableRequest, change_request, paused, resumed
from binlake.source.offsets import Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.recovery import recover
from binlake.stream.tables.between_batches import BetweenBatches, complain_of_statements, complain_of_tables
from binlake.tables.audit import audit
from binlake.tables.lake import Lake
from hudilake.errors import CorruptDataError, TableStoppedError, TransientError
from hudilake.services.restore import restore
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.binlake.stream.dying_store import Answer, DyingStore, Fate, Killed
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, event, services, settings
from tests.hypothesis_profile import scaled
from tests.judges import hudi_rs

A, B, C = (SourceTable("shop", name) for name in "abc")
TABLES = ("a", "b", "c")
Rows = dict[int, str]


@dataclass
class World:
    """The source, its topics, its connector, and the lake. ``fate``: when the stream's process dies."""

    path: Path
    fate: Fate = field(default_factory=Fate)
    rows: dict[str, Rows] = field(default_factory=lambda: {table: {} for table in TABLES})
    log: TopicLog = field(default_factory=TopicLog)
    told: list[bytes] = field(default_factory=list)
    signals: list[str] = field(default_factory=list)
    pos: int = 1000
    deaths: int = 0
    sections: dict[str, Any] = field(default_factory=dict)
    ddl: list[bytes] = field(default_factory=list)
    _runner: BatchRunner | None = None
    _registry: SchemaRegistry | None = None

    # -- the source ------------------------------------------------------------------------------------------------

    def put(self, table: str, key: int, owner: str, *, said: bool = True, true: bool = True) -> None:
        """Insert or update a row. Not ``said``: no event tells. Not ``true``: only the event says so."""
        if true:
            self.rows[table][key] = owner
        if said:
            self._event(table, "u", key, owner)

    def delete(self, table: str, key: int, *, said: bool = True, true: bool = True) -> None:
        if true:
            self.rows[table].pop(key, None)
        if said:
            self._event(table, "d", key, "")

    def truncate(self, table: str) -> None:
        self.rows[table].clear()
        self._event(table, "t", None, "")

    def rename(self, *pairs: tuple[str, str]) -> None:
        """RENAME TABLE a TO b, c TO d; its record comes to the stream with the next batch."""
        for old, new in pairs:
            self.rows[new] = self.rows.pop(old)
        self.pos += 40
        told = event(pairs[0][0], "u", self.pos, {})["source"]
        self.pos += 40
        text = "RENAME TABLE " + ", ".join(f"shop.{old} TO shop.{new}" for old, new in pairs)
        self.ddl.append(json.dumps({"source": told, "databaseName": "shop", "ddl": text, "tableChanges": []}).encode())

    def _event(self, table: str, op: str, key: int | None, owner: str, snapshot: str = "false") -> None:
        self.pos += 0 if op == "r" else 40
        row = {"id": key, "owner": owner, "balance": "AfQ=", "region": "eu"}
        made = event(table, op, self.pos, row)
        made["source"]["snapshot"] = snapshot
        if op == "t":
            made["after"] = None
        self.log.add(f"s.shop.{table}", made, None if key is None else {"id": key})

    # -- the connector ---------------------------------------------------------------------------------------------

    def read_chunk(self, table: str, keys: Iterable[int]) -> None:
        """Rows of an incremental snapshot, as the table has them now."""
        for key in keys:
            if key in self.rows[table]:
                self._event(table, "r", key, self.rows[table][key], "incremental")

    def tell(self, signal: str, kind: str, table: str, status: str = "SUCCEEDED") -> None:
        more = {"connector_name": "s", "scanned_collection": f"shop.{table}", "status": status}
        told = {"id": signal, "type": kind, "aggregate_type": "Incremental Snapshot", "additional_data": more}
        self.told.append(json.dumps(told).encode())

    def tell_keys(self, signal: str, table: str, last: str, greatest: str) -> None:
        keys = {"last_processed_key": last, "maximum_key": greatest, "current_collection_in_progress": f"shop.{table}"}
        self.tell(signal, "IN_PROGRESS", table)
        [*_, document] = map(json.loads, self.told)
        document["additional_data"] |= keys
        self.told[-1] = json.dumps(document).encode()

    def read_outdated(self, table: str, key: int, owner: str) -> None:
        """A row that was read before a change of its key, and sent after it."""
        self._event(table, "r", key, owner, "incremental")

    def signal(self, request: ResyncRequest) -> None:
        """See binlake.stream.tables.resync.Connector."""
        self.signals.append(request.id)

    def notifications(self) -> Iterable[bytes]:
        """See binlake.stream.tables.resync.Connector."""
        told, self.told = self.told, []
        return told

    def ends(self, places: Offsets) -> Offsets:
        """See binlake.stream.tables.resync.Connector."""
        return self.log.end().within(places)

    # -- people ----------------------------------------------------------------------------------------------------

    def ask(self, table: SourceTable, change: Callable[[TableRequest], TableRequest]) -> None:
        change_request(self.store().sub(".binlake/shop"), table, change)

    def ask_for_resync(self, table: str, signal: str) -> None:
        order = ordering_value(0, 3, self.pos)
        earlier = self.runner.tables.request(SourceTable("shop", table)).resync
        place, order = order, order if earlier is None else max(order, earlier.order + 1)
        request = ResyncRequest(signal, SourceTable("shop", table), "s", order, place, 1)
        self.ask(SourceTable("shop", table), lambda known: TableRequest(known.paused, known.asked_ms, request))

    # -- the stream ------------------------------------------------------------------------------------------------

    def store(self) -> Storage:
        return open_storage(str(self.path), {"fsync": "false"})

    @property
    def runner(self) -> BatchRunner:
        """The running process; a new one after a death."""
        if self._runner is None:
            config = settings(str(self.path), (*TABLES, "b_old"), **self.sections)
            root: Storage = DyingStore(self.store(), self.fate)
            lake, state = Lake(root), root.sub(".binlake/shop")
            ledger = Ledger.load(state, config.name) or recover(config, root, lake)
            for source in ledger.tables:
                lake.get(config.table_rules(source))
            registry = self._registry = SchemaRegistry(config)
            self._runner = BatchRunner(config, lake, state, ledger, registry, services(), None, self)
            self._runner._resyncs._looked_s = -1e9
        return self._runner

    def restart(self) -> None:
        self._runner = None

    def work(self) -> None:
        """A batch, and what is done between two. A process that dies is started again."""
        heard = list(self.told)
        try:
            self._work()
        except Killed:
            self.fate.settle()
            self.fate = Fate()
            self.deaths += 1
            self.told = heard  # the topic is read from its beginning
            self.restart()
            self._work()

    def _work(self) -> None:
        runner, engine = self.runner, LocalEngine(self.log)
        assert self._registry is not None
        self._registry.learn(self.ddl)
        runner.tend()
        runner.run(runner.ledger.batch, self.log.end(), 0, engine)
        runner._resyncs._looked_s = -1e9
        for source in runner.tables.due():
            while source in runner.ledger.behind and runner.catch_up(source, engine) is not None:
                pass
        runner.tend()

    def lake(self, table: str) -> Rows:
        found = hudi_rs.snapshot(f"{self.path}/shop/{table}").to_pylist()
        assert len({row["id"] for row in found}) == len(found)
        return {row["id"]: row["owner"] for row in found}

    def check(self, *tables: str) -> None:
        for table in tables or TABLES:
            assert self.lake(table) == self.rows[table], table
            assert audit(self.store().sub(f"shop/{table}")).errors == []


def started(path: Path, fate: Fate | None = None) -> World:
    world = World(path, fate or Fate())
    for key in range(12):
        for table in TABLES:
            world.put(table, key, f"{table}{key}")
    world.work()
    return world


def spoil(world: World, table: str) -> None:
    """A missing, an extra and two wrong rows in the lake."""
    world.delete(table, 1, true=False)
    world.put(table, 77, "extra", true=False)
    world.put(table, 2, "wrong", true=False)
    world.put(table, 3, "stale", said=False)
    world.delete(table, 4, said=False)
    world.work()
    assert world.lake(table) != world.rows[table]


def test_a_paused_table_waits_while_the_others_go_on(tmp_path: Path) -> None:
    world = started(tmp_path)
    world.ask(A, paused)
    world.put("a", 1, "later")
    world.put("b", 1, "now")
    world.work()
    assert world.lake("a")[1] == "a1"
    world.check("b", "c")
    world.restart()
    world.truncate("a")  # no row of this table comes in this batch
    world.work()
    world.put("a", 20, "after the truncate")
    world.work()
    assert len(world.lake("a")) == 12
    assert world.runner.tables.due() == []
    complain_of_tables(world.runner.ledger)
    world.ask(A, resumed)
    world.put("c", 5, "now")
    world.work()
    world.check()
    assert world.runner.ledger.behind == {}


def test_a_table_that_is_paused_before_a_lost_ledger_stays_paused(tmp_path: Path) -> None:
    world = started(tmp_path)
    world.ask(A, paused)
    world.work()
    (tmp_path / ".binlake" / "shop" / "ledger.json").unlink()
    world.restart()
    world.put("a", 1, "later")
    world.work()
    assert world.lake("a")[1] == "a1"
    world.ask(A, resumed)
    world.work()
    world.check()


def test_ddl_of_a_paused_table_waits_with_its_records(tmp_path: Path) -> None:
    """Rows from before and after the statement are caught up after it is carried out."""
    source = DdlSource()
    for table in ("t", "u"):
        source.create(table, {"id": "bigint", "name": "varchar(20)"})
        source.put(table, 1, name="one")
    follower = Follower(source, tmp_path)
    follower.run()
    runner = follower._runner
    assert runner is not None
    t = SourceTable("shop", "t")
    runner.ledger.pause(t, ["s.shop.t"], 1)
    for table in ("t", "u"):
        source.put(table, 2, name="before")
        source.add(table, "size", "int", 7, "NOT NULL DEFAULT 7")
        source.put(table, 3, name="after", size=8)
    follower.run()
    follower.check("u")
    assert follower.stored("t") == {1: {"id": 1, "name": "one"}}
    runner.ledger.unpause(t)
    assert runner.catch_up(t, LocalEngine(source.log)) is not None
    follower.check("t")
    assert follower.quarantined() == []


def test_the_last_statement_waits_for_rows_that_are_caught_up_at_the_end(tmp_path: Path) -> None:
    """Two keys, one after the other, each of which waits for the rows before it; no row comes after the second."""
    source = DdlSource()
    source.create("t", {"id": "bigint", "number": "bigint"})
    source.put("t", 1, number=1)
    follower = Follower(source, tmp_path)
    follower.run()
    runner, registry = follower._runner, follower._registry
    assert runner is not None
    assert registry is not None
    source.put("t", 2, number=2)
    source.rekey("t", "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (number)", ("number",))
    source.put("t", 3, number=3)
    source.rekey("t", "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id)", ("id",))
    registry.learn(source.ddl)
    engine = LocalEngine(source.log)
    runner.run(1, source.log.end(), 0, engine)
    assert SourceTable("shop", "t") in runner.ledger.behind
    BetweenBatches(runner, engine, follower.told.append, threading.Event()).finish()
    assert HudiTable.open(open_storage(str(tmp_path / "shop" / "t"))).config.record_key_fields == ("id",)
    follower.check("t")
    assert runner.ledger.behind == {}


def rekeyed(source: DdlSource, name: str) -> None:
    source.rekey("t", f"ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY ({name})", (name,))


def numbered(path: Path, fate: Fate | None = None) -> tuple[DdlSource, Follower, BatchRunner]:
    """A table with a row, in the lake."""
    source = DdlSource()
    source.create("t", {"id": "bigint", "number": "bigint"})
    source.put("t", 1, number=1)
    follower = Follower(source, path, fate=fate)
    follower.run()
    assert follower._runner is not None
    return source, follower, follower._runner


def finish(source: DdlSource, follower: Follower, runner: BatchRunner) -> None:
    """The end of a run, all statements known."""
    assert follower._registry is not None
    follower._registry.learn(source.ddl)
    BetweenBatches(runner, LocalEngine(source.log), follower.told.append, threading.Event()).finish()


def test_a_statement_that_still_waits_at_the_end_is_told(tmp_path: Path) -> None:
    """The rows before it have come after the run began: the next run takes them, and carries it out."""
    source, follower, runner = numbered(tmp_path)
    source.put("t", 3, number=3)
    rekeyed(source, "number")
    with pytest.raises(TransientError, match=r"shop\.t: its statement at 000003:\d+ waits for rows") as caught:
        finish(source, follower, runner)
    assert "the next run carries them out" in caught.value.do_next
    runner.ledger.pause(SourceTable("shop", "t"), ["s.shop.t"], 1)
    finish(source, follower, runner)
    runner.ledger.unpause(SourceTable("shop", "t"))
    follower.run()
    finish(source, follower, runner)
    assert HudiTable.open(open_storage(str(tmp_path / "shop" / "t"))).config.record_key_fields == ("number",)


def test_a_statement_that_failed_is_told_at_the_end(tmp_path: Path) -> None:
    fate = Fate(answer=Answer.FAILED)
    source, follower, runner = numbered(tmp_path, fate)
    source.add("t", "size", "int", 7, "NOT NULL DEFAULT 7")
    assert follower._registry is not None
    follower._registry.learn(source.ddl)
    fate.at = len(fate.calls)
    told = runner.settle()
    assert told is not None
    assert "the store failed" in (told.ddl[0].error or "")
    with pytest.raises(TransientError, match=r"1 table has statements that were not carried out\. shop\.t: the store"):
        finish(source, follower, runner)
    follower.restart()
    source.put("t", 2, number=2, size=3)
    follower.run()
    assert follower._runner is not None
    finish(source, follower, follower._runner)
    follower.check("t")


def test_a_statement_whose_error_does_not_pass_is_for_a_person() -> None:
    passing, final = TransientError("waits"), CorruptDataError("is broken", do_next="mend it")
    complain_of_statements({})
    with pytest.raises(TableStoppedError, match=r"1 table .* shop\.b: is broken") as caught:
        complain_of_statements({A: passing, B: final})
    assert caught.value.do_next == "mend it; then start again"


def test_statements_that_wait_without_rows_between_them_are_carried_out_in_one_batch(tmp_path: Path) -> None:
    source, follower, runner = numbered(tmp_path)
    for _ in range(4):
        rekeyed(source, "number")
        rekeyed(source, "id")
    source.put("t", 2, number=2)
    assert follower._registry is not None
    follower._registry.learn(source.ddl)
    runner.run(1, source.log.end(), 0, LocalEngine(source.log))
    assert runner.ledger.behind == {}
    follower.check("t")


@pytest.mark.full
def test_a_resync_makes_the_table_equal(tmp_path: Path) -> None:
    """Rows are read while others change; changes before, between and after the chunks all count."""
    world = started(tmp_path)
    spoil(world, "b")
    world.ask_for_resync("b", "one")
    world.work()
    assert world.runner.ledger.resyncs[B].step is ResyncStep.SIGNALLED
    assert world.signals == ["one"]
    world.tell("one", "STARTED", "b")
    world.put("b", 5, "changed before its chunk")
    world.read_chunk("b", range(6))
    world.put("b", 5, "changed after its chunk")
    world.delete("b", 0)
    world.read_outdated("b", 0, "it was read before it was deleted")
    world.put("b", 5, "changed once more")
    world.read_outdated("b", 5, "it was read before it was changed")
    world.work()
    assert world.runner.ledger.resyncs[B].step is ResyncStep.READING
    assert 77 in world.lake("b")
    world.delete("b", 6)
    world.put("b", 30, "new")
    world.read_chunk("b", range(6, 100))
    world.tell("one", "TABLE_SCAN_COMPLETED", "b")
    world.tell("one", "COMPLETED", "b")
    world.work()
    assert world.runner.ledger.resyncs[B].step is ResyncStep.DONE
    world.check()
    world.put("b", 77, "now it is there")
    world.work()
    world.check()


@pytest.mark.first(3)
@pytest.mark.parametrize("heard", ["before", "while", "after"])
@pytest.mark.parametrize("restarted", [False, True], ids=["", "restarted"])
def test_a_table_that_is_renamed_before_or_while_it_is_fetched_anew_keeps_its_rows(
    tmp_path: Path, heard: str, restarted: bool
) -> None:
    """The connector reads the table that has the name by then: its rows are not those of the table that was meant."""
    world = started(tmp_path)
    pairs = ("b", "b_old"), ("c", "b")
    if heard == "before":
        world.ask_for_resync("b", "one")  # the stream hears of the rename first
        world.rename(*pairs)
        world.work()
        assert world.signals == []
    else:
        world.ask_for_resync("b", "one")
        world.work()
    if heard == "while":
        world.rename(*pairs)
        world.read_chunk("b", range(6))
        world.work()
    elif heard == "after":
        world.read_chunk("b", range(6))
        world.rename(*pairs)
        world.read_chunk("b", range(6, 100))
    if restarted:
        world.restart()
    world.tell("one", "TABLE_SCAN_COMPLETED", "b")
    world.work()
    found = world.runner.ledger.resyncs[B]
    assert (found.step, "shop.b was renamed" in found.why) == (ResyncStep.FAILED, True)
    world.put("b_old", 3, "later")
    world.put("b", 3, "later too")
    world.work()
    assert {"b": world.lake("b"), "c": world.lake("c")} == {"b": world.rows["b_old"], "c": world.rows["b"]}


def test_a_table_that_was_renamed_long_ago_is_fetched_anew(tmp_path: Path) -> None:
    world = started(tmp_path)
    world.rename(("b", "b_old"))
    world.put("b_old", 1, "later")
    world.work()
    world.put("b_old", 2, "unsaid", said=False)
    order = ordering_value(0, 3, world.pos)
    asked = ResyncRequest("one", SourceTable("shop", "b_old"), "s", order, order, 1)
    world.ask(B, lambda known: TableRequest(resync=asked))
    world.restart()
    world.work()
    world.read_chunk("b_old", range(100))
    world.tell("one", "TABLE_SCAN_COMPLETED", "b_old")
    world.work()
    assert world.runner.ledger.resyncs[B].step is ResyncStep.DONE
    assert world.lake("b") == world.rows["b_old"]


def test_a_resync_in_hand_says_how_far_it_is(tmp_path: Path) -> None:
    world = started(tmp_path)
    assert world.runner.resync_in_hand() is None
    world.ask_for_resync("a", "signal")
    world.work()
    world.tell_keys("signal", "a", "3", "11")
    world.work()
    reading = world.runner.resync_in_hand()
    assert reading is not None
    assert (reading.kind, reading.subject, reading.done, reading.of, reading.unit) == (
        "resync",
        "shop.a",
        3,
        11,
        "keys",
    )
    world.tell_keys("signal", "a", "9", "11")
    world.work()
    further = world.runner.resync_in_hand()
    assert further is not None
    assert further.done == 9
    assert further.seconds_left is not None
    assert further.seconds_left > 0
    world.tell_keys("signal", "a", "b-7", "z")  # of such keys nobody knows a share
    world.read_chunk("a", range(12))
    world.tell("signal", "TABLE_SCAN_COMPLETED", "a")
    world.runner._resyncs._looked_s = -1e9
    world.runner.tend()  # the connector has read the table, and nothing of it is applied
    applying = world.runner.resync_in_hand()
    assert applying is not None
    assert (applying.done, applying.of, applying.unit) == (0, 12, "records")
    world.work()
    assert world.runner.resync_in_hand() is None
    world.check()


def test_a_second_resync_without_a_change_in_between(tmp_path: Path) -> None:
    """The rows of the first one must go if the source no longer has them."""
    world = started(tmp_path)
    for signal in ("one", "two", "three"):
        world.ask_for_resync("b", signal)
        world.work()
        world.read_chunk("b", range(100))
        world.tell(signal, "TABLE_SCAN_COMPLETED", "b")
        world.work()
        world.check()
        assert world.runner.ledger.resyncs[B] == Resync(
            signal, ResyncStep.DONE, world.log.end().within({"s.shop.b": {0: 0}})
        )
        world.delete("b", len(world.signals), said=False)
        world.put("b", 9, signal, said=False)
    world.put("b", 9, "streamed")
    world.work()
    assert world.lake("b")[9] == "streamed"


def test_a_resync_of_an_empty_table(tmp_path: Path) -> None:
    world = started(tmp_path)
    world.rows["b"].clear()
    world.ask_for_resync("b", "one")
    world.work()
    world.tell("one", "TABLE_SCAN_COMPLETED", "b", "EMPTY")
    world.work()
    world.check()


def test_rows_that_come_after_the_end_of_a_resync_are_not_lost(tmp_path: Path) -> None:
    """A notification may overtake rows in another topic."""
    world = started(tmp_path)
    spoil(world, "b")
    world.ask_for_resync("b", "one")
    world.work()
    world.tell("one", "TABLE_SCAN_COMPLETED", "b")
    world.work()
    assert world.lake("b") == {}
    world.read_chunk("b", range(100))
    world.work()
    world.check()


def test_a_restore_does_not_undo_a_resync_for_good(tmp_path: Path) -> None:
    """The stream delivers the rows again, and repeats the last commit, which no record of Kafka brings."""
    world = started(tmp_path)
    spoil(world, "b")
    world.ask_for_resync("b", "one")
    world.work()
    world.read_chunk("b", range(100))
    world.work()
    world.tell("one", "TABLE_SCAN_COMPLETED", "b")
    world.work()
    world.check()
    world.restart()
    table = HudiTable.open(world.store().sub("shop/b"))
    commits = [i.requested_time for i in table.timeline.completed() if i.action == "deltacommit"]
    for back in (2, 3):  # the last commit alone; then the rows of the snapshot, too
        restore(HudiTable.open(world.store().sub("shop/b")), commits[-back])
        assert 77 in world.lake("b")
        world.work()
        world.check()
        world.restart()
        table = HudiTable.open(world.store().sub("shop/b"))
        commits = [i.requested_time for i in table.timeline.completed() if i.action == "deltacommit"]


@pytest.mark.parametrize(
    ("kind", "status", "said"),
    [
        ("TABLE_SCAN_COMPLETED", "NO_PRIMARY_KEY", "NO_PRIMARY_KEY"),
        ("COMPLETED", "", "without reading"),
        ("ABORTED", "", "ABORTED"),
    ],
)
def test_a_resync_that_the_connector_gives_up_deletes_nothing(
    tmp_path: Path, kind: str, status: str, said: str
) -> None:
    world = started(tmp_path)
    before = world.lake("b")
    world.ask_for_resync("b", "one")
    world.tell("another", kind, "b", status)
    world.work()
    assert world.runner.ledger.resyncs[B].step is ResyncStep.SIGNALLED
    world.tell("one", kind, "b", status)
    world.work()
    resync = world.runner.ledger.resyncs[B]
    assert (resync.step, said in resync.why) == (ResyncStep.FAILED, True)
    assert world.lake("b") == before


def test_a_paused_table_ends_its_resync_when_it_goes_on(tmp_path: Path) -> None:
    world = started(tmp_path)
    spoil(world, "b")
    world.ask(B, paused)
    world.work()
    world.ask_for_resync("b", "one")
    world.read_chunk("b", range(100))
    world.tell("one", "TABLE_SCAN_COMPLETED", "b")
    before = world.lake("b")
    world.work()
    world.work()
    assert world.lake("b") == before
    world.ask(B, resumed)
    world.work()
    world.check()


def scenario(world: World, dice: random.Random) -> Iterable[Callable[[], None]]:
    """What happens at the source and what people ask, between two batches each."""
    yield partial(spoil, world, "b")
    yield partial(world.ask, A, paused)
    yield partial(world.ask_for_resync, "b", "one")

    def changes() -> None:
        for _ in range(6):
            table, key = dice.choice(TABLES), dice.randrange(15)
            if dice.random() < 0.3:
                world.delete(table, key)
            else:
                world.put(table, key, f"v{world.pos}")

    for keys in (range(5), range(5, 9), range(9, 100)):
        yield changes
        yield partial(world.read_chunk, "b", keys)
    yield partial(world.tell, "one", "TABLE_SCAN_COMPLETED", "b")
    yield changes
    yield partial(world.ask, A, resumed)
    yield changes


def play(path: Path, seed: int, fate: Fate) -> World:
    world = started(path, fate)
    for happens in scenario(world, random.Random(seed)):
        happens()
        world.work()
    world.work()
    return world


@pytest.mark.full
def test_deaths_at_storage_calls(tmp_path: Path) -> None:
    """One table paused and resumed, one fetched anew, one as ever: all equal wherever the process dies."""
    counting = Fate()
    play(tmp_path / "count", 1, counting).check()
    dice, calls = random.Random(15), len(counting.calls)
    for turn in range(scaled(12)):
        fate = Fate(dice.randrange(calls // 4, calls), Answer.LOST if dice.random() < 0.5 else Answer.DONE)
        world = play(tmp_path / str(turn), 1 + turn // 4, fate)
        world.check()
        assert world.runner.ledger.resyncs[B].step is ResyncStep.DONE
        assert world.deaths <= 1


# -- tables that cannot go on by themselves ------------------------------------------------------------------------


def occupied(world: World) -> None:
    """The table of ``b`` is another's: all its properties name another key, which no retry changes."""
    place = world.path / "shop" / "b" / ".hoodie" / "hoodie.properties"
    text = place.read_text()
    place.with_suffix(".kept").write_text(text)
    place.write_text(re.sub(r"^(hoodie\.(?:table|datasource|bucket)\S*field\S*)=id$", r"\1=owner", text, flags=re.M))
    (place.parent / ".hoodie.properties.crc").unlink(missing_ok=True)
    world.restart()


def released(world: World) -> None:
    place = world.path / "shop" / "b" / ".hoodie" / "hoodie.properties"
    place.write_text(place.with_suffix(".kept").read_text())


def test_a_stopped_table_waits_for_a_person_while_the_others_go_on(tmp_path: Path) -> None:
    world = started(tmp_path)
    occupied(world)
    world.put("a", 1, "goes on")
    world.put("b", 1, "waits")
    world.work()
    world.check("a", "c")
    assert world.runner.ledger.stopped[B].kind == "ConfigError"
    assert world.runner.ledger.stopped[B].do_next
    assert world.runner.tables.due() == []
    with pytest.raises(TableStoppedError) as caught:
        complain_of_tables(world.runner.ledger)
    assert caught.value.exit_code == 80
    assert "shop.b" in str(caught.value)
    released(world)
    world.put("b", 2, "waits too")
    world.put("a", 2, "goes on too")
    world.work()
    assert Ledger.load(world.store().sub(".binlake/shop"), "shop") == world.runner.ledger
    assert B in world.runner.ledger.stopped
    world.ask(B, resumed)
    world.work()
    world.check()
    assert (world.runner.ledger.stopped, world.runner.ledger.behind) == ({}, {})


def test_a_new_run_tries_a_stopped_table_once(tmp_path: Path) -> None:
    world = started(tmp_path)
    occupied(world)
    world.put("b", 1, "waits")
    world.work()
    released(world)
    world.restart()
    assert world.runner.tables.due() == [B]
    world.work()
    world.check()
    complain_of_tables(world.runner.ledger)


def test_a_table_that_may_recover_is_not_stopped(tmp_path: Path) -> None:
    world = started(tmp_path)
    ledger = world.runner.ledger
    ledger.note_behind(B, {"s.shop.b": {0: 3}})
    assert world.runner.tables.due() == [B]
    with pytest.raises(TransientError):
        complain_of_tables(ledger)
    assert not world.runner.tables.stop_if_final(B, TransientError("passes"))


def test_requests_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    world = started(tmp_path)
    (tmp_path / ".binlake" / "shop" / "requests.json").write_text('{"version": 1, "tables": [{}]}')
    with pytest.raises(CorruptDataError, match="requests about tables"):
        world.runner.tend()
