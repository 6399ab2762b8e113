"""A batch of a store's change events: the table of cells commits, then the wide table that is derived from it."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from binlake.settings import Settings
from binlake.source.offsets import Offsets
from binlake.tables.audit import OFFSET_KEYS, audit
from hudilake.read.slice import read_table
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import Storage
from hudilake.table.table import HudiTable
from tests.binlake.hbase.cells_world import wal_entry
from tests.binlake.stream.topic_log import LocalEngine, TopicLog
from tests.judges import hudi_rs
from tests.programs.crash_points.story import Place, stream

_TOPIC = "hbase.shop.orders.wal"
_COLUMNS = {"order_id": ":key", "user_id": "d:user_id#b long", "status": "d:status#b utf8"}
#: order_id, user_id, status.
Row = tuple[str, int | None, str | None]
_BEFORE, _LAST = 1, 3


@dataclass
class WideStory:
    """The entries of all batches, what the wide table must hold after each, and how many faults there are."""

    log: TopicLog = field(default_factory=TopicLog)
    ends: list[Offsets] = field(default_factory=list)
    rows: list[list[Row]] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    _sequence: int = 0

    def entry(self, *cells: tuple[str, str, int, bytes | None]) -> None:
        """One WAL entry: row, qualifier of family d, timestamp, value; without a value a delete of the column's
        versions up to there, of the family's without a qualifier."""
        self._sequence += 1
        said = [_cell(*cell) for cell in cells]
        self.log.add(_TOPIC, wal_entry(said, self._sequence), None, self._sequence % 2)

    def end(self, *rows: Row, faults: int = 0) -> None:
        """The batch is complete."""
        self.ends.append(self.log.end())
        self.rows.append(sorted(rows))
        self.faults.append(faults)


def _cell(row: str, qualifier: str, timestamp: int, value: bytes | None) -> dict[str, Any]:
    kind = "Put" if value is not None else "DeleteColumn" if qualifier else "DeleteFamily"
    texts = {"row": row.encode(), "family": b"d", "qualifier": qualifier.encode(), "value": value or b""}
    return {name: base64.b64encode(text).decode() for name, text in texts.items()} | {
        "timeStamp": timestamp,
        "type": kind,
    }


def _long(value: int) -> bytes:
    return value.to_bytes(8, "big")


@cache
def wide_story() -> WideStory:
    """The same for all."""
    told = WideStory()
    told.entry(("a", "user_id", 10, _long(1)), ("a", "status", 10, b"new"))
    told.entry(("b", "user_id", 10, _long(2)))
    told.entry(("c", "status", 10, b"new"))
    told.end(("a", 1, "new"), ("b", 2, None), ("c", None, "new"))
    told.entry(("b", "status", 11, b"new"))
    told.entry(("a", "user_id", 9, _long(9)))  # late: an older version
    told.end(("a", 1, "new"), ("b", 2, "new"), ("c", None, "new"))
    told.entry(("c", "", 20, None), ("a", "status", 20, None))
    told.entry(("d", "user_id", 20, b"bad"), ("d", "status", 20, b"new"))
    told.entry(("b", "user_id", 21, _long(3)))
    told.end(("a", 1, None), ("b", 3, "new"), ("d", None, "new"), faults=1)
    told.entry(("c", "status", 15, b"masked"), ("d", "user_id", 30, _long(4)))
    told.end(("a", 1, None), ("b", 3, "new"), ("d", 4, "new"), faults=1)
    return told


@dataclass
class WideBatch:
    """A batch with rows for a table of cells and its wide table. ``more``: rules of both."""

    first: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)

    def prepare(self, place: Place) -> None:
        if self.first:
            place.open().write("empty", b"")
            return
        for number in range(_BEFORE + 1):
            self._run_to(number, place, place.open())

    def do(self, place: Place, root: Storage) -> None:
        self._run_to(_BEFORE + 1, place, root)

    def trouble(self, place: Place) -> list[str]:
        return _wrong(place, _BEFORE + 1)

    def go_on(self, place: Place) -> list[str]:
        self._run_to(_LAST, place, place.open())
        return [*_wrong(place, _LAST), *_unsound(place)]

    def _settings(self, place: Place) -> Settings:
        rules = {"buckets": 2, "retention": {"commits": 3}, "compaction": {"mode": "off"}, **self.more}
        document = {
            "name": "shop",
            "lake": {"uri": place.uri, "options": dict(place.options)},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [_TOPIC]},
            "source": {"format": "hbase_wal"},
            "tables": {"defaults": rules, "cells": [{"source": "shop.orders", "wide": {"columns": _COLUMNS}}]},
            "locking": {"lock": "process"},
        }
        return Settings.parse(json.dumps(document))

    def _run_to(self, batch: int, place: Place, root: Storage) -> None:
        """A process of the stream that applies everything up to the end of a batch, then ends. Raises LakeError."""
        told, runner = wide_story(), stream(place, root, self._settings(place))
        engine = LocalEngine(told.log)
        try:
            runner.run(batch, told.ends[batch], 0, engine)
            runner.derive_missing()
            for source in list(runner.ledger.behind):
                runner.catch_up(source, engine)
        finally:
            runner.close()


def _wrong(place: Place, batch: int) -> list[str]:
    """What is wrong with the wide table's rows, and with the quarantine."""
    wanted, names = wide_story().rows[batch], list(_COLUMNS)
    parts = read_table(place.open().sub("shop/orders"), names)
    rows = sorted(tuple(row[name] for name in names) for part in parts for row in part.to_pylist())
    found = [] if rows == wanted else [f"our reader shows {rows} for {wanted}"]
    if place.path is not None:
        rust = hudi_rs.snapshot(place.path / "shop/orders").select(names).to_pylist()
        shown = sorted(tuple(row[name] for name in names) for row in rust)
        found += [] if shown == wanted else [f"hudi-rs shows {shown} for {wanted}"]
    storage = place.open().sub("_quarantine/shop")
    held = sum(part.num_rows for part in read_table(storage, ["topic"])) if HudiTable.exists(storage) else 0
    faults = wide_story().faults[batch]
    return found if held == faults else [*found, f"{held} entries in the quarantine for {faults}"]


def _unsound(place: Place) -> list[str]:
    found: list[str] = []
    for path in ("shop/orders_cells", "shop/orders"):
        storage = place.open().sub(path)
        errors = [f for f in fsck(storage, OFFSET_KEYS, grace_ms=0).findings if f.severity is Severity.ERROR]
        if (
            path == "shop/orders_cells"
        ):  # a file of a table's first commit that lands after its rollback: the same cells
            errors = [
                f for f in errors if not f.what.startswith("a file of a commit that was rolled back still exists")
            ]
        found += [f"fsck of {path}: {f.what} ({f.where})" for f in errors]
        found += [f"audit of {path}: {f.what}" for f in audit(storage).errors]
        found += [f"pending in {path}: {i.file_name}" for i in HudiTable.open(storage).timeline.pending()]
    return found
