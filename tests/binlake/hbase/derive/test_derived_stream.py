"""The stream derives its wide tables: after a crash, held back by a person or an error, and from quarantined cells."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from binlake.decode.changes import SourceTable
from binlake.hbase.derive.derivation import Deriver
from binlake.load.replay.quarantine import replay
from binlake.load.replay.quarantine_records import QuarantineSelection, held_records
from binlake.position.ledger import Ledger
from binlake.position.table_requests import change_request, paused, resumed
from binlake.stream.monitoring.progress import TableProgress
from binlake.tables.seal import Seal
from hudilake.storage import open_storage
from tests.binlake.hbase.cells_world import CellsWorld, wal_entry
from tests.binlake.stream.dying_store import Killed

WIDE = SourceTable("shop", "orders")
COLUMNS = {"order_id": ":key", "user_id": "d:user_id#b long", "status": "d:status#b utf8"}


class WideWorld(CellsWorld):
    """A stream of one store's table with a wide table."""

    def __init__(self, path: Path, columns: dict[str, str] | None = None) -> None:
        super().__init__(path, ())
        self.sequence = 0
        self.declare(columns or COLUMNS)

    def declare(self, columns: dict[str, str]) -> None:
        """A new process, with these columns."""
        self.start(tables={"cells": [{"source": "shop.orders", "wide": {"columns": columns}}]})

    def put(self, row: str, **values: bytes) -> None:  # type: ignore[override]
        """One entry with cells of family d."""
        self.sequence += 1
        texts = [{"row": row.encode(), "family": b"d", "qualifier": n.encode(), "value": v} for n, v in values.items()]
        cells: list[dict[str, Any]] = [{k: base64.b64encode(v).decode() for k, v in text.items()} for text in texts]
        said = [{**cell, "timeStamp": self.sequence, "type": "Put"} for cell in cells]
        self.log.add("hbase.shop.orders.wal", wal_entry(said, self.sequence), None)

    def wide(self) -> dict[str, TableProgress]:
        """The progress of a batch, by table."""
        return {part.table: part for part in self.batch().tables}

    def shown(self) -> set[tuple[Any, ...]]:
        """The wide table through hudi-rs; fsck and audit find nothing wrong with both tables."""
        self.rows("row", "family", "qualifier", "timestamp", "kind", path="shop/orders_cells")
        return self.rows("order_id", "user_id", "status")

    def ask(self, change: Any) -> None:  # noqa: ANN401 - a function of requests
        """A person's request about the wide table, which the running stream takes."""
        change_request(open_storage(self.settings.state_uri), WIDE, change)
        self.runner.tend()

    def go_on(self) -> list[str]:
        """What the stream does between batches; what could not be caught up."""
        self.runner.derive_missing()
        return [str(t) for t in self.runner.tables.due() if self.runner.catch_up(t, self.engine) is None]


@pytest.fixture
def world(tmp_path: Path) -> WideWorld:
    """One row, derived."""
    made = WideWorld(tmp_path)
    made.put("a", user_id=(7).to_bytes(8, "big"), status=b"new")
    told = made.wide()["shop.orders"]
    assert told.derived is not None
    assert (told.derived.rows, told.derived.upserts, told.error) == (1, 1, None)
    return made


def test_a_batch_tells_what_it_derived(world: WideWorld) -> None:
    world.put("b", status=b"new")
    event = world.batch()
    assert [part.table for part in event.tables] == ["shop.orders_cells", "shop.orders"]
    assert event.stage_ms["derive"] > 0
    assert event.events_read == 1  # a wide table has no records of its own
    assert type(event).from_json(event.to_json()) == event
    assert world.shown() == {("a", 7, "new"), ("b", None, "new")}


def test_a_death_between_the_two_commits_is_made_good(world: WideWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(Deriver, "derive", dies)
    world.put("b", status=b"new")
    with pytest.raises(Killed):
        world.batch()
    monkeypatch.undo()
    world.start()
    assert world.shown() == {("a", 7, "new")}
    event = world.runner.derive_missing()
    assert event is not None
    assert world.shown() == {("a", 7, "new"), ("b", None, "new")}
    assert world.runner.derive_missing() is None
    world.feed()  # the batch again: its records are applied already
    assert world.shown() == {("a", 7, "new"), ("b", None, "new")}


def test_a_paused_wide_table_waits_and_its_cells_go_on(world: WideWorld) -> None:
    world.ask(paused)
    world.put("b", status=b"new")
    assert list(world.wide()) == ["shop.orders_cells"]
    assert world.go_on() == []
    assert world.shown() == {("a", 7, "new")}
    world.start()  # the ledger remembers
    world.put("c", status=b"new")
    assert list(world.wide()) == ["shop.orders_cells"]
    world.ask(resumed)
    assert world.go_on() == []
    assert world.shown() == {("a", 7, "new"), ("b", None, "new"), ("c", None, "new")}
    assert world.runner.ledger.behind == {}


def test_a_wide_table_that_cannot_be_derived_is_stopped_alone(world: WideWorld) -> None:
    world.declare({**COLUMNS, "status": "d:status#b long"})
    world.put("b", user_id=(8).to_bytes(8, "big"))
    told = world.wide()
    assert told["shop.orders_cells"].error is None
    assert "status" in (told["shop.orders"].error or "")
    ledger = Ledger.load(open_storage(world.settings.state_uri), "shop")
    assert ledger is not None
    assert "status" in ledger.stopped[WIDE].what
    world.put("c", status=b"new")
    assert list(world.wide()) == ["shop.orders_cells"]  # tried once a run
    assert world.go_on() == []
    world.ask(resumed)
    assert world.go_on() == ["shop.orders"]
    world.declare(COLUMNS)
    assert world.go_on() == []
    assert world.shown() == {("a", 7, "new"), ("b", 8, None), ("c", None, "new")}
    assert world.runner.ledger.stopped == {}


def test_quarantined_cells_come_back_when_their_row_is_right(world: WideWorld) -> None:
    world.put("b", user_id=b"bad", status=b"new")
    world.put("c", user_id=b"bad", status=b"new")
    told = world.wide()["shop.orders"].derived
    assert told is not None
    assert told.faults == 2
    world.put("b", user_id=(8).to_bytes(8, "big"))
    world.feed()
    done = replay(world.settings, QuarantineSelection())
    assert (done.selected, done.applied, done.failed, done.errors) == (2, 1, 1, {})
    held = held_records(
        open_storage(f"{world.path}/lake").sub("_quarantine/shop"), QuarantineSelection(), Seal(None), payload=True
    )
    assert [(one.key, one.value, one.source_table) for one in held] == [(b"c", b"bad", "shop.orders")]
    world.put("d", status=b"new")
    world.feed()
    assert world.shown() == {("a", 7, "new"), ("b", 8, "new"), ("c", None, "new"), ("d", None, "new")}
