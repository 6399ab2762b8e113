"""One soak, from an empty lake to the report.

Legs and checks take turns. In a leg events come, the stream commits, compacts, cleans and archives, and processes are
killed; for a check the events pause, the stream catches up, and every table must be the source's table.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from binlake.position.ledger import Ledger
from binlake.stream.spark.java import java_environment
from demo.produce import create_topics, end_offsets
from hudilake.clock import monotonic_s, now_ms
from hudilake.errors import LakeError
from hudilake.storage import open_storage
from tests.judges.hudi_spark import HudiSpark
from tests.programs.soak.actors import CompactorProcess, Victim
from tests.programs.soak.checks import TableChecks, spanned
from tests.programs.soak.latency import Recorder, report
from tests.programs.soak.player import Player, Probe
from tests.programs.soak.setting import Bounds, Compactor, document, write
from tests.programs.soak.source import SoakSource

_SNAPSHOT_ROWS = 300
_CATCH_UP_S = 180.0
_POLL_S = 0.05
#: Without a commit the stream hangs.
_STANDSTILL_S = 120.0
_WATCHED_EVERY_S = 1.0
#: Changes between two added columns.
_ALTER_EVERY = 1_500


@dataclass(frozen=True)
class Options:
    """What kind of soak.

    Args:
        seed: of the events and of the kills.
        seconds: how long the legs take together; None for no such end.
        commits: committing batches after which it ends; None for no such end.
        kill_every_s: mean time between two kills; None for none.
        most_kills: after so many there are no more.
        leg_s: between two checks.
        spark_every: every how many checks Hudi Spark is asked too; it is always asked at the end.
        per_second: changes a second at the source.
        trigger_ms: of the stream.
    """

    seed: int
    seconds: float | None = 600
    commits: int | None = None
    kill_every_s: float | None = 20
    most_kills: int = 1 << 30
    leg_s: float = 60
    spark_every: int = 4
    per_second: float = 150
    trigger_ms: int = 100
    compactor: Compactor = "async"
    bounds: Bounds = field(default_factory=Bounds)


class SoakFailed(AssertionError):
    """A check failed: what, where, with which seed."""


class Soak:
    """A soak in a directory of its own.

    Args:
        options: see there.
        directory: for the lake, the settings and the logs.
        servers: the broker.
        prefix: begins its topics' names.
        spark: gives Hudi's own reader; None leaves it out.
        say: prints a line.
    """

    def __init__(
        self,
        options: Options,
        directory: Path,
        servers: str,
        prefix: str,
        spark: Callable[[], HudiSpark] | None,
        say: Callable[[str], None],
    ) -> None:
        self.options, self.directory, self._servers, self._spark, self._say = options, directory, servers, spark, say
        self._chance = random.Random(options.seed)
        self.source = SoakSource(options.seed, lambda: now_ms() * 1000, prefix)
        self.recorder = Recorder()
        self._player = Player(self.source, servers, options.per_second, _ALTER_EVERY)
        self._probe = Probe(directory, lambda ms: setattr(self.recorder, "probe_ms", ms))
        topics = list(self.source.topics())
        settings = document(directory, prefix, servers, topics, options.compactor, options.bounds, options.trigger_ms)
        self._conf = write(directory / "soak.yaml", settings)
        most = options.bounds.most_instants
        lake = directory / "lake" / "live"
        self.tables = {t.name: TableChecks(t.name, lake / t.name, most) for t in self.source.tables}
        self._stream: Victim | None = None
        self._buried: list[Victim] = []
        self._compactor: CompactorProcess | None = None
        if options.compactor == "process":
            self._compactor = CompactorProcess(self._conf, java_environment(), directory / "compact.log")
        self.kills = self.checks = 0
        self._legs_s = 0.0
        self._moved = (0, 0.0)
        self._watched_s = 0.0

    def run(self) -> dict[str, Any]:
        """All of it; the report. Raises SoakFailed."""
        try:
            create_topics(self._servers, {**self.source.topics(), self.source.prefix: 1})
            self._player.send(self.source.begin(_SNAPSHOT_ROWS))
            self._player.pause()
            self._start()
            while not self._over():
                self._leg()
                self._check(with_spark=self.checks % self.options.spark_every == self.options.spark_every - 1)
            self._finish()
        except Exception as error:
            raise SoakFailed(self._context(error)) from error
        finally:
            self._end_all()
        return self.report()

    def report(self) -> dict[str, Any]:
        """Latencies over time, what was killed and checked, and what the tables took."""
        spans = [span for table in self.tables.values() for span in table.compactions()]
        within = spanned(spans)
        told = report(self.recorder.warm(), lambda batch: any(within(instant) for instant in batch.instants))
        return {
            "seed": self.options.seed,
            "commits": self.recorder.commits,
            "changes": self.source.changes,
            "starts": self.recorder.start,
            "kills": self.kills,
            "checks": self.checks,
            "compactor_runs": self._compactor.runs if self._compactor is not None else 0,
            "upkeep": {name: table.services() for name, table in self.tables.items()},
            "most_active_commits": {name: table.most_seen for name, table in self.tables.items()},
            "sizes": {name: [s._asdict() for s in table.sizes] for name, table in self.tables.items()},
            "latency": told,
        }

    # -- legs ------------------------------------------------------------------------------------------------------

    def _over(self) -> bool:
        seconds, commits = self.options.seconds, self.options.commits
        return bool((seconds and self._legs_s >= seconds) or (commits and self.recorder.commits >= commits))

    def _leg(self) -> None:
        began = monotonic_s()
        self._moved = self.recorder.commits, began
        kill_at = began + self._until_kill()
        self._player.resume()
        self._probe.resume()
        while monotonic_s() - began < self.options.leg_s and not self._over():
            self._look()
            self._goes_on()
            if monotonic_s() >= kill_at:
                self._kill()
                kill_at = monotonic_s() + self._until_kill()
            time.sleep(_POLL_S)
        self._probe.pause()
        self._player.pause()
        self._legs_s += monotonic_s() - began

    def _until_kill(self) -> float:
        every = self.options.kill_every_s
        none = every is None or self.kills >= self.options.most_kills
        return float("inf") if none or every is None else self._chance.uniform(0.1, 2 * every)

    def _look(self) -> None:
        """Is everybody alive and at work?"""
        self._alive().check()
        if self._compactor is not None:
            self._compactor.tick()
        now = monotonic_s()
        if now - self._watched_s >= _WATCHED_EVERY_S:
            self._watched_s = now
            for table in self.tables.values():
                table.watch()

    def _goes_on(self) -> None:
        """Events come, so commits must."""
        now = monotonic_s()
        if self._moved[0] != self.recorder.commits:
            self._moved = self.recorder.commits, now
        assert now - self._moved[1] < _STANDSTILL_S, f"no commit for {_STANDSTILL_S:.0f} s though events come"

    def _kill(self) -> None:
        """Kill something. Now and then all readers must agree on what the dead left, before anybody mends it."""
        self.kills += 1
        if self._compactor is not None and self._chance.random() < 0.5:
            self._compactor.kill()
            return
        victim, with_children = self._alive(), self._chance.random() < 0.5
        victim.kill(with_children=with_children)
        self._buried.append(victim)
        if self._chance.random() < 0.5:
            for table in self.tables.values():
                table.readers_agree()
        self._start()

    def _start(self) -> None:
        self.recorder.begin()
        log = self.directory / f"stream-{self.recorder.start:03d}.log"
        self._stream = Victim(self._conf, java_environment(), log, self.recorder.take)

    def _alive(self) -> Victim:
        assert self._stream is not None
        return self._stream

    # -- checks ----------------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        ends = end_offsets(self._servers, self.source.topics())
        counted = {place: len(sent) for place, sent in self._player.sent.items() if place[0] != self.source.prefix}
        assert {p: e for p, e in ends.items() if e} == counted, "the broker holds other records than were sent"
        deadline = monotonic_s() + _CATCH_UP_S
        while behind := self._behind(ends):
            self._look()
            assert monotonic_s() < deadline, f"not caught up after {_CATCH_UP_S:.0f} s: {behind}"
            time.sleep(_POLL_S)
        if self._compactor is not None:
            self._compactor.rest()

    def _behind(self, ends: dict[tuple[str, int], int]) -> str:
        """What the ledger lacks."""
        state = open_storage(str(self.directory / "lake" / ".binlake" / self.source.prefix))
        ledger = Ledger.load(state, self.source.prefix)
        if ledger is None:
            return "no ledger"
        if ledger.behind:
            return f"tables {ledger.behind}; {self._alive().errors}"
        late = {(t, p): e for (t, p), e in ends.items() if ledger.positions.get(t, {}).get(p, 0) < e}
        return str(late) if late else ""

    def _check(self, *, with_spark: bool) -> None:
        self._catch_up()
        self._judge(with_spark=with_spark)

    def _judge(self, *, with_spark: bool) -> None:
        began = monotonic_s()
        truths = {truth.table: truth for truth in self.source.truth()}
        for name, table in self.tables.items():
            table.against(truths[name], self._player.changes_nothing, self._chance)
            if with_spark and self._spark is not None:
                table.spark_agrees(self._spark())
        self._nothing_went_wrong()
        self.checks += 1
        sizes = ", ".join(
            f"{name} {len(truths[name].rows)} rows, {t.sizes[-1].files} files, {t.sizes[-1].instants} commits"
            for name, t in self.tables.items()
        )
        judges = "binlake, hudi-rs and Hudi Spark" if with_spark and self._spark is not None else "binlake and hudi-rs"
        done = f"{self.recorder.commits} commits, {self.source.changes:,} changes, {self.kills} kills"
        self._say(f"{self._legs_s:5.0f} s, {done}: right by {judges} in {monotonic_s() - began:.1f} s; {sizes}")

    def _nothing_went_wrong(self) -> None:
        """No table failed or warned, no record was refused, no compaction process failed."""
        assert not self.recorder.warnings, f"a commit or the upkeep after it failed: {self.recorder.warnings[:3]}"
        assert not (self.directory / "lake" / "_quarantine").exists(), "records went to quarantine"
        failures = self._compactor.failures if self._compactor is not None else []
        assert not failures, f"binlake compact failed: {failures[:1]}"

    def _finish(self) -> None:
        """Stop in order, then the last check, on files that nobody writes any more."""
        code = self._alive().stop()
        assert code == 0, f"the stream ended with exit code {code}"
        self._judge(with_spark=True)

    def _end_all(self) -> None:
        for thread in (self._player, self._probe):
            thread.end()
        if self._compactor is not None:
            self._compactor.kill()
        for victim in [*self._buried, *([self._stream] if self._stream else [])]:
            victim.bury()

    def _context(self, error: Exception) -> str:
        what = str(error) if isinstance(error, (AssertionError, LakeError)) else f"{type(error).__name__}: {error}"
        return (
            f"{what}\n  seed {self.options.seed}, after {self._legs_s:.0f} s, {self.recorder.commits} commits and "
            f"{self.kills} kills\n  kept: {self.directory} (soak.yaml, the lake, a log of each start)"
        )
