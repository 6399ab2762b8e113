"""A small store whose events feed a table of cells and a wide table, the commands on it, and what both must hold."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from typer.testing import CliRunner, Result

from binlake.cli.app import app
from binlake.decode.changes import RawRecords, SourceTable
from binlake.load.replay.replay_dumps import ReplayReport, replay_dumps
from binlake.source.dump_layout import Window
from binlake.source.scan_read import Scan
from binlake.tables.audit import audit
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from hudilake.read.table_reader import TableReader
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import Storage, open_storage
from tests.binlake.hbase.cells_world import CellsWorld, cells_of
from tests.binlake.hbase.recordings import RawCell, topic
from tests.binlake.hbase.scans import load, write
from tests.binlake.hbase.test_wide_tables import entry, wanted_rows, wide_rows
from tests.binlake.hbase.visibility import edits
from tests.binlake.load.replay.dumped import HERE
from tests.binlake.load.replay.test_dump import Records
from tests.binlake.stream.dying_store import DyingStore, Fate

#: No TTL, nothing compacted: the lake equals its final scan. 479 cells of 20 rows.
STORE: Final = "shop:counters"
CELLS: Final = SourceTable("shop", "counters_cells")
WIDE: Final = SourceTable("shop", "counters")
PARTS: Final = 4


class Store:
    """A stream of the recorded entries of ``STORE``, delivered in ``PARTS`` parts.

    Args:
        path: where the lake is made.
        like: another one, whose lake and deliveries are copied.
    """

    def __init__(self, path: Path, like: Store | None = None) -> None:
        if like is not None:
            shutil.copytree(like.lake, path / "lake")
        self.world = CellsWorld(path, ())
        defaults = {"buckets": 3, "compaction": {"mode": "off"}, "retention": {"commits": 3}}
        self.world.start(tables={"cells": [entry(STORE)], "defaults": defaults})
        self.delivered: int = 0 if like is None else like.delivered
        self.world.log.records |= {} if like is None else {k: [*v] for k, v in like.world.log.records.items()}
        self.world.batches = 0 if like is None else like.world.batches

    @property
    def lake(self) -> Path:
        """The root of the lake."""
        return self.world.path / "lake"

    def parts(self, number: int) -> list[RawRecords]:
        """The records of one of the parts, of each partition."""
        steps = [(records, -(-len(records) // PARTS)) for records in topic(STORE, "wal").values()]
        return [records.select(range(number * step, min((number + 1) * step, len(records)))) for records, step in steps]

    def deliver(self) -> None:
        """The next part in a batch of the stream."""
        for records in self.parts(self.delivered):
            self.world.deliver(records)
        self.world.feed()
        self.delivered += 1
        runner = self.world.runner
        for source in list(runner.ledger.behind):
            while source in runner.ledger.behind:
                assert runner.catch_up(source, self.world.engine) is not None

    def records(self) -> Records:
        """The whole topic, for a dump."""
        found = Records([])
        for records in topic(STORE, "wal").values():
            columns = (records.offsets.tolist(), records.timestamps_ms.tolist(), records.keys, records.values)
            found.held += [(records.topic, records.partition, *row) for row in zip(*columns, strict=True)]
        return found

    def deliver_all(self) -> None:
        """All parts that are left."""
        while self.delivered < PARTS:
            self.deliver()

    def restart(self) -> None:
        """A new process of the stream."""
        self.world.start()

    def replay_scan(self, place: Path, fate: Fate) -> ReplayReport:
        """The replay of scans below ``place``, through a lake whose calls get the answers of ``fate``."""
        root = DyingStore(open_storage(str(self.lake), {"fsync": "false"}), fate)
        scan = Scan(SourceTable(*STORE.split(":")))
        return replay_dumps(self.world.settings, str(place), Window(), HERE, scan=scan, root=root)

    def load_scan(self, place: Path, cells: Iterable[RawCell]) -> None:
        """A scan of these cells is written below ``place`` and loaded by the command."""
        done = load(self.world.conf, write(place, cells), STORE)
        assert done.exit_code == 0, done.output

    # -- the tables ---------------------------------------------------------------------------------------------------

    def storage(self, table: SourceTable) -> Storage:
        """Where a table is."""
        return open_storage(str(self.lake / table.database / table.table), {"fsync": "false"})

    def opened(self, table: SourceTable) -> LakeTable:
        """A table, open for writing."""
        found = Lake(open_storage(str(self.lake), {"fsync": "false"})).get(self.world.settings.table_rules(table))
        assert found is not None
        return found

    def wrong(self) -> list[str]:
        """What is wrong once all parts are delivered."""
        self.deliver_all()
        return self.trouble()

    def trouble(self) -> list[str]:
        """What is wrong in a lake that has all cells: hudi-rs shows what the store has, and the tables are sound."""
        self.world.runner.derive_missing()
        newest: dict[Any, Any] = {}
        for edit in (edit for records in topic(STORE, "wal").values() for edit in edits(records)):
            key = (edit.place, edit.kind)
            newest[key] = max(edit, newest.get(key, edit), key=lambda one: one.order)
        want = {RawCell(edit.place, edit.kind, edit.value) for edit in newest.values()}
        found = [] if set(cells_of(self.world.cells("counters"))) == want else ["the cells are not those of the store"]
        found += [] if wide_rows(self.world, STORE) == wanted_rows(STORE) else ["the wide table is not the final scan"]
        for table in (CELLS, WIDE):
            findings = [*fsck(self.storage(table), grace_ms=0).findings, *audit(self.storage(table)).findings]
            found += [f"{table}: {one.what}" for one in findings if one.severity == Severity.ERROR]
        return found

    def steps(self, table: SourceTable, condition: str) -> dict[str, int]:
        """How many file slices each step leaves of those that a query has to read."""
        plan = TableReader.open(self.storage(table)).plan(condition=condition)
        return {step.name: step.slices for step in plan.steps if step.slices is not None}

    # -- commands -----------------------------------------------------------------------------------------------------

    def run(self, command: str, *arguments: str) -> Result:
        """A command on the lake; ``command`` may have several words. Raises its error."""
        done = CliRunner().invoke(app, [*command.split(), str(self.world.conf), *arguments])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done

    def json(self, command: str, *arguments: str) -> list[dict[str, Any]]:
        """The lines that a command prints with ``--json``."""
        return [json.loads(line) for line in self.run(command, *arguments, "--json").stdout.splitlines()]
