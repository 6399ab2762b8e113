"""TPC-C live: ``binlake run`` follows the server through Debezium and Kafka, and all of them are killed."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from binlake.position.ledger import Ledger
from binlake.source.offsets import Offsets
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.spark.java import java_environment
from embedded.jars import small_spark
from hudilake.clock import monotonic_s
from hudilake.storage import open_storage
from tests.programs.soak.actors import Victim
from tests.programs.tpcc.cuts import CutReader
from tests.programs.tpcc.player import settings
from tests.programs.tpcc.queries import difference, of_lake, of_server
from tests.programs.tpcc.recording import DATABASE, PREFIX, STREAM, TABLES, TpccRecording
from tests.programs.tpcc.source import TpccSource, tpcc_source
from tests.programs.tpcc.workload import queries

_WAREHOUSES, _ROUNDS, _TRANSACTIONS, _FEW = 2, 5, 150, 12
#: Of CH-benCHmark alone.
_FURTHER_TABLES = ("nation", "region", "supplier")
_LEAST_CUTS, _PATIENCE_S = 3, 60.0
_CATCH_UP_S = 240.0


@dataclass
class LiveRun:
    """A run in a directory.

    Args:
        source: the services.
        place: of the lake and the settings.
        seed: of the kills.
        killed: how often each was killed.
    """

    source: TpccSource
    place: Path
    seed: int
    killed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("stream", "connector", "broker"), 0))
    notices: tuple[str, ...] = ()
    stream: Victim | None = None
    starts: int = 0

    def play(self) -> str:
        """All rounds; what is wrong with the stream then, or "". The connector's snapshot is read before the first.

        Raises TransientError.
        """
        chance = random.Random(self.seed)
        self.source.connect.start()
        self.source.mark()
        self._start()
        trouble = self._catch_up()
        for number in range(_ROUNDS):
            workload = self.source.begin(_TRANSACTIONS)
            time.sleep(chance.uniform(0.1, 2.5))
            self._kill(("connector", "stream", "broker")[number % 3])
            self._wait_for_batch()
            time.sleep(chance.uniform(0.1, 2.0))
            self._kill("stream" if chance.random() < 0.6 else "connector")
            workload.wait(180)
            assert workload.returncode == 0, "go-tpc failed"
        for _ in range(_LEAST_CUTS + 1):  # a state becomes a cut when the next batch begins
            self.source.mark()
            trouble = trouble or self._catch_up()
            assert self.source.begin(_FEW).wait(180) == 0, "go-tpc failed"
        self.source.mark()
        trouble = trouble or self._catch_up()
        if self.stream is not None:
            self.stream.stop()
        return trouble

    def end(self) -> None:
        """Nothing of it goes on."""
        if self.stream is not None:
            self.stream.bury()

    def _kill(self, what: str) -> None:
        self.killed[what] += 1
        if what == "connector":
            self.source.connect.kill()
            self.source.connect.start()
        elif what == "broker":
            self.source.broker.kill()
            self.source.broker.start()
        elif self.stream is not None and self.stream.running:
            self.stream.kill(with_children=True)
        self._start_if_dead()

    def _wait_for_batch(self) -> None:
        """Until the stream has finished a batch since, so that it is at work when it is killed."""
        before, deadline = self._batches(), monotonic_s() + _PATIENCE_S
        while self._batches() == before and monotonic_s() < deadline:
            self._start_if_dead()
            time.sleep(0.05)

    def _batches(self) -> int:
        ledger = self._ledger()
        return ledger.batch if ledger is not None else 0

    def _ledger(self) -> Ledger | None:
        return Ledger.load(open_storage(f"{self.place}/lake/.binlake/{STREAM}"), STREAM)

    def _start(self) -> None:
        conf = self.place / "tpcc.yaml"
        conf.write_text(json.dumps(self._settings(), indent=1))
        self.starts += 1
        self.stream = Victim(conf, java_environment(), self.place / f"stream-{self.starts}.log", self._note)

    def _note(self, event: ProgressEvent) -> None:
        self.notices = event.notices

    def _settings(self) -> dict[str, Any]:
        document = settings(str(self.place / "lake"), self.source.broker.bootstrap_servers, trigger_interval_ms=100)
        document["batch"]["max_events"] = 4_000
        document["kafka"]["ddl_topics"] = [PREFIX]
        document["spark"] = small_spark()
        return document

    def _catch_up(self) -> str:
        """Wait until the stream has all rows, which nobody kills now, though nothing follows them; why it never will,
        or "".
        """
        records = self.source.records()
        ends = Offsets.of_places((t, p, len(held)) for (t, p), held in records.items())
        rows = Offsets({t: parts for t, parts in ends.items() if t.startswith(f"{PREFIX}.{DATABASE}.")})
        deadline = monotonic_s() + _CATCH_UP_S
        self._start_if_dead()
        while short := self._short_of(rows):
            trouble = self._trouble()
            if trouble or monotonic_s() > deadline:
                TpccRecording(records).save(self.place / "recording.xz")
                return f"the stream: {trouble or f'nothing for {_CATCH_UP_S:.0f} s'}: {short} of {rows}; {self.notices}"
            time.sleep(0.2)
        return ""

    def _trouble(self) -> str:
        """What the stream says that will not pass: it has ended."""
        if self.stream is None or not self.stream.running:
            log = self.place / f"stream-{self.starts}.log"
            return f"it ended by itself: {log.read_text(errors='replace').strip()[-600:]}"
        return ""

    def _start_if_dead(self) -> None:
        """A stream that the last kill of a service has ended."""
        if self.stream is None or not self.stream.running:
            self._start()

    def _short_of(self, ends: Offsets) -> str:
        ledger = self._ledger()
        if ledger is None:
            return "no ledger"
        return str(ledger.positions.short_of(ends) or ledger.behind or "")


def judged(cache: Path, go_tpc: Path, place: Path, seed: int) -> tuple[list[str], str]:
    """One run: what is wrong, and what was done, in words."""
    with tpcc_source(go_tpc, _WAREHOUSES) as source:
        source.load(further=True)
        run = LiveRun(source, place, seed)
        try:
            trouble = run.play()
        finally:
            run.end()
        source.check()
        asked = queries(cache)
        server = of_server(source.database, asked)
        snapshot = TpccRecording(source.records()).snapshot()
    if trouble:
        return [trouble], f"{run.starts} starts, killed {run.killed}"
    reader = CutReader(str(place / "lake" / DATABASE), TABLES)
    cuts = reader.cuts(snapshot)
    wrong = reader.broken(cuts) if len(cuts) >= _LEAST_CUTS else [f"there are {len(cuts)} cuts"]
    further = CutReader(str(place / "lake" / DATABASE), _FURTHER_TABLES)
    lake = of_lake({**reader.tables, **further.tables}, asked)
    wrong += [f"{name}: {said}" for name in asked if (said := difference(server[name], lake[name]))]
    filled = sum(bool(rows) for rows in server.values())
    done = f"{len(cuts)} cuts, {run.starts} starts, killed {run.killed}; {len(asked)} queries, {filled} with rows"
    return wrong, done
