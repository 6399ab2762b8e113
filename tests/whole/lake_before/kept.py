"""The kept lake, unpacked, with the records that go on from there and what its tables must hold then."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from binlake.load.replay.replay_dumps import ReplayReport
from binlake.settings import Settings
from binlake.source.offsets import Offsets
from binlake.tables.audit import audit
from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.format.timeline.instant import CLEAN, COMMIT, DELTA_COMMIT
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.load.replay.dumped import replay
from tests.binlake.stream.soundness import errors_in
from tests.judges import hudi_rs
from tests.judges.agreement import assert_same, read_ourselves
from tests.judges.hudi_spark import HudiSpark
from tests.paths import DATA
from tests.whole.lake_before.log import TimedLog
from tests.whole.lake_before.running import LAKES, Process, command, configure, tables

#: The commits whose code wrote a kept lake: before the redesign, and before the packages.
WRITERS = ("8c54ec0", "1414bcf")
_BATCHES = 12


@lru_cache(maxsize=4)
def record(writer: str, name: str) -> dict[str, Any]:
    """``events``: topics, DDL and dump files, and how much of them the lake has. ``rows``: what its tables hold."""
    content: dict[str, Any] = json.loads(gzip.decompress((_files(writer) / f"{name}.json.gz").read_bytes()))
    return content


def _files(writer: str) -> Path:
    return DATA / "lake_before" / writer


@dataclass
class KeptLake:
    """The lake in a directory, which must be the working directory where dumps are replayed."""

    place: Path
    writer: str

    def __post_init__(self) -> None:
        with tarfile.open(_files(self.writer) / "lakes.tar.gz") as tar:
            tar.extractall(self.place, filter="data")
        configure(self.place)
        self.logs = {name: TimedLog.restored(rows) for name, rows in self.record("events")["topics"].items()}

    def record(self, name: str) -> dict[str, Any]:
        """What its writer recorded beside it (``record``)."""
        return record(self.writer, name)

    def table(self, path: str) -> HudiTable:
        return HudiTable.open(open_storage(str(self.place / path)))

    def stream(self, name: str) -> Process:
        """A process of a stream, which knows the DDL that the lake has."""
        found = Process(self.place, name, self.logs[name])
        if name == "shop":
            found.registry.learn(self.ddl()[: self.record("events")["ddl_begun"]])
        return found

    def ddl(self) -> list[bytes]:
        return [text.encode() for text in self.record("events")["ddl"]]

    def lose_ledgers(self) -> None:
        for name, lake in LAKES.items():
            (self.place / lake / ".binlake" / name / "ledger.json").unlink()

    # -- going on ---------------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Everything that comes after, by both streams, with a quarantine replay, a dump replay and a compaction."""
        shop = self.stream("shop")
        shop.registry.learn(self.ddl())
        for part in range(1, _BATCHES + 1):
            self._feed(shop, part)
            if part == 2:
                shop.catch_up()
                self.replay_quarantine()
                command(self.place, "shop", "compact", "shop.parts", "--json")
                self.replay_dump()
        assert (shop.ledger.positions, shop.ledger.behind) == (shop.log.end(), {})
        shop.close()
        bank = self.stream("bank")
        for part in range(1, _BATCHES + 1):
            self._feed(bank, part)
        assert bank.ledger.positions == bank.log.end()
        bank.close()

    def _feed(self, stream: Process, part: int) -> None:
        begun = Offsets.from_json(self.record("events")["begun"][stream.name])
        if stream.name == "shop":
            begun = begun.merge({t: ps for t, ps in stream.recovered.items() if t.endswith(".visits")})
        stream.feed(stream.log.after(begun, part, _BATCHES))

    def replay_quarantine(self) -> None:
        """One record can be applied by now; of another the table's history says that it was."""
        (done,) = command(self.place, "shop", "quarantine replay", "--json")
        counts = {name: done[name] for name in ("selected", "applied", "found", "failed", "errors")}
        assert counts == {"selected": 4, "applied": 1, "found": 1, "failed": 2, "errors": {}}
        (again,) = command(self.place, "shop", "quarantine replay", "--json")
        assert (again["selected"], again["failed"]) == (2, 2)

    def replay_dump(self) -> ReplayReport:
        """Two files were replayed before; the third is new."""
        for name, text in self.record("events")["dumps"].items():
            path = self.place / "dumps" / name
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        report = replay(Settings.load(self.place / "shop.json"))
        assert (len(report.found), report.covered, len(report.taken)) == (3, 2, 1)
        return report

    # -- looking ----------------------------------------------------------------------------------------------------

    def check_sound(self) -> None:
        """Neither fsck nor the audit of any table finds an error."""
        for name, path in tables(self.place).items():
            assert errors_in(path) == [], name
            assert [f.what for f in audit(open_storage(str(path))).errors] == [], name

    def check_rows(self, spark: HudiSpark | None = None) -> None:
        """All tables hold what the sources hold in the end, by every reader."""
        for name, (columns, rows) in self.record("rows")["after"].items():
            uri = str(self.place / name)
            assert_same(f"binlake, {name}", read_ourselves(uri), rows, columns)
            assert_same(f"hudi-rs, {name}", hudi_rs.snapshot(uri), rows, columns)
            if spark is not None:
                assert_same(f"Hudi Spark, {name}", spark.snapshot(uri), rows, columns)

    def upkeep(self, path: str) -> dict[str, Any]:
        """A table's newest compaction and clean, and how many commits are in its history."""
        timeline = self.table(path).timeline
        newest = {action: timeline.completed_actions({action})[-1].requested_time for action in (COMMIT, CLEAN)}
        return {**newest, "history": len(timeline.history().commits())}

    def forge(self, path: str, key: str, change: Callable[[Any], Any]) -> None:
        """Rewrite what the newest commit with a key of extraMetadata says under it; None takes the key away."""
        timeline = self.table(path).timeline
        for instant in reversed(timeline.completed_actions({DELTA_COMMIT})):
            body = timeline.commit_metadata(instant)
            if key in body.extra:
                said = change(json.loads(body.extra[key]))
                extra = {**body.extra, key: json.dumps(said)}
                if said is None:
                    del extra[key]
                forged = CommitMetadata(body.stats, extra, body.operation).to_bytes()
                (self.place / path / instant.path).write_bytes(forged)
                return
        raise AssertionError(f"no commit of {path} has {key}")
