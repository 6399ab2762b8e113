"""Statements carried out on a table's rows, with rows in the same batch."""

from __future__ import annotations

import copy
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
from tests.binlake.schema.ddl_source import DdlSource
from tests.binlake.stream.topic_log import LocalEngine
from tests.judges import hudi_rs
from tests.programs.crash_points.story import Place, stream

Held = dict[int, dict[str, Any]]


@dataclass
class Stages:
    """A source after each of its stages: the topics' ends, the number of DDL records, the rows."""

    source: DdlSource = field(default_factory=DdlSource)
    ends: list[Offsets] = field(default_factory=list)
    ddl: list[int] = field(default_factory=list)
    rows: list[Held] = field(default_factory=list)

    def end(self) -> None:
        """A stage is complete."""
        self.ends.append(self.source.log.end())
        self.ddl.append(len(self.source.ddl))
        self.rows.append(copy.deepcopy(self.source.tables["t"].rows))


@cache
def stages() -> Stages:
    """Rows; then a default filled, a column copied, a type widened (with a compaction before it); then more rows."""
    made = Stages()
    source = made.source
    source.create("t", {"id": "int", "name": "varchar(20)", "qty": "int"})
    for key in range(4):
        source.put("t", key, name=f"n{key}", qty=key)
    made.end()
    source.add("t", "tier", "int", 3, "NOT NULL DEFAULT 3")
    source.rename("t", "name", "label")
    source.put("t", 1, label="x", tier=4)
    source.modify("t", "qty", "bigint")
    source.put("t", 2, qty=2**40)
    made.end()
    source.delete("t", 0)
    source.put("t", 3, qty=2**41)
    made.end()
    return made


@dataclass
class Statements:
    """The second stage. ``defaults``: rules of the table."""

    defaults: Mapping[str, Any] = field(default_factory=dict)

    def prepare(self, place: Place) -> None:
        self._run(place, place.open(), 0)

    def do(self, place: Place, root: Storage) -> None:
        self._run(place, root, 1)

    def _run(self, place: Place, root: Storage, stage: int) -> None:
        made = stages()
        runner = stream(place, root, _settings(place, self.defaults), made.source.ddl[: made.ddl[stage]])
        try:
            event = runner.run(stage, made.ends[stage], 0, LocalEngine(made.source.log))
        finally:
            runner.close()
        for told in event.ddl:
            if told.error:
                self._run(place, root, stage)  # tried again after a pause, or by the next process
                return

    def trouble(self, place: Place) -> list[str]:
        return self._wrong_rows(place, 1)

    def _wrong_rows(self, place: Place, stage: int) -> list[str]:
        wanted = stages().rows[stage]
        found = [r for part in read_table(place.open().sub("shop/t")) for r in part.to_pylist()]
        return _differences("our reader", found, wanted)

    def go_on(self, place: Place) -> list[str]:
        self._run(place, place.open(), 2)
        storage, found = place.open().sub("shop/t"), self._wrong_rows(place, 2)
        if place.path is not None:
            found += _differences("hudi-rs", hudi_rs.snapshot(place.path / "shop/t").to_pylist(), stages().rows[2])
        findings = [f for f in fsck(storage, OFFSET_KEYS, grace_ms=0).findings if f.severity is Severity.ERROR]
        found += [f"fsck: {f.what} ({f.where})" for f in findings] + [f"audit: {f.what}" for f in audit(storage).errors]
        recorded = json.loads(HudiTable.open(storage).extra_metadata("binlake.ddl") or "[]")
        return found if len(recorded) == 3 else [*found, f"the commits record {len(recorded)} statements"]


def _differences(who: str, rows: list[dict[str, Any]], wanted: Held) -> list[str]:
    names = list(next(iter(wanted.values())))
    shown = sorted(([row.get(n) for n in names] for row in rows), key=str)
    listed = sorted(([row[n] for n in names] for row in wanted.values()), key=str)
    return [] if shown == listed else [f"{who} shows {shown} for {listed}"]


def _settings(place: Place, defaults: Mapping[str, Any]) -> Settings:
    document = {
        "name": "shop",
        "lake": {"uri": place.uri, "options": dict(place.options)},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topic_pattern": r"s(\.shop\..*)?"},
        "tables": {"defaults": {"buckets": 2, **defaults}},
    }
    return Settings.parse(json.dumps(document))
