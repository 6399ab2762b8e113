"""The rules of the state machine: what may happen to a stream, its processes, its tables and their services."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hudilake import clock
from hudilake.errors import ConfigError, UnsupportedError
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.compaction import CompactionConfig, run
from hudilake.services.restore import restore
from hudilake.services.savepoint import create_savepoint, delete_savepoint
from hudilake.table.table import HudiTable
from tests.binlake.stream.dying_store import Answer
from tests.hudilake.services.compaction.steps import serially
from tests.programs.machine.checks import check_lake, check_restored
from tests.programs.machine.world import Plan, World, move_disk, moved

_TABLES = ("t", "u")
_SEEDS = st.integers(0, 1 << 16)
WHICH = st.sampled_from(_TABLES)
KEYS = st.integers(0, 5)
COMPACTION = CompactionConfig(after_commits=1 << 20, log_ratio=None)
_CALLS = st.integers(0, 140)


class Machine(RuleBasedStateMachine):
    """Two source tables and their lake tables."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="binlake-machine-"))
        self.time = SimpleNamespace(ahead_ms=0)
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(clock, "time", moved(self.time))
        move_disk(self.patch)
        self.columns = 0
        self.names = 0
        self.changed = False

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.stop()
        self.patch.undo()
        shutil.rmtree(self.directory)

    @initialize(
        plan=st.builds(
            Plan,
            framed=st.booleans(),
            metadata=st.booleans(),
            often=st.booleans(),
            shuffled=st.booleans(),
            hours=st.booleans(),
        )
    )
    def begin(self, plan: Plan) -> None:
        self.world = World(plan, self.directory)
        for table in _TABLES:
            self.world.create(table)
            for key in range(3):
                self.world.put(table, key, name="first", qty=key)
        self.world.deliver(random.Random(0), 100, in_order=True)
        self._run()

    def _run(self) -> None:
        self.world.run()
        self.changed = True

    def _source(self, lake: str) -> str:
        """The name of now of the source table that goes to a lake table."""
        return next(name for name, path in self.world.path_of.items() if path == lake)

    # -- the source -------------------------------------------------------------------------------------------------

    @rule(lake=WHICH, keys=st.lists(KEYS, min_size=1, max_size=6), seed=_SEEDS)
    def put(self, lake: str, keys: list[int], seed: int) -> None:
        table, chance = self._source(lake), random.Random(seed)
        kinds = self.world.source.tables[table].columns
        for key in keys:
            texts = {n: f"v{chance.randrange(100)}" for n, kind in kinds.items() if kind.startswith("varchar")}
            numbers = {n: chance.randrange(100) for n, kind in kinds.items() if kind in ("int", "bigint")}
            self.world.put(table, key, **{**texts, **numbers, "id": key})

    @rule(lake=WHICH, key=KEYS)
    def delete(self, lake: str, key: int) -> None:
        table = self._source(lake)
        if key in self.world.source.tables[table].rows:
            self.world.delete(table, key)

    @rule(lake=WHICH)
    def truncate(self, lake: str) -> None:
        self.world.truncate(self._source(lake))

    @rule(lake=WHICH)
    def poison(self, lake: str) -> None:
        self.world.poison(self._source(lake))

    @rule(lake=WHICH, value=st.one_of(st.none(), st.integers(0, 9)))
    def add_column(self, lake: str, value: int | None) -> None:
        table, name = self._source(lake), f"c{self.columns}"
        self.columns += 1
        clause = "NULL" if value is None else f"NOT NULL DEFAULT {value}"

        def step(row: dict[str, object]) -> None:
            row[name] = value

        self.world.alter(table, lambda: self.world.source.add(table, name, "int", value, clause), step)

    @rule(lake=WHICH, at=st.integers(0, 9))
    def drop_column(self, lake: str, at: int) -> None:
        table = self._source(lake)
        names = [n for n in self.world.source.tables[table].columns if n != "id"]
        if len(names) > 1:
            name = names[at % len(names)]
            self.world.alter(table, lambda: self.world.source.drop(table, name), lambda row: row.pop(name, None))

    @rule(lake=WHICH, at=st.integers(0, 9))
    def rename_column(self, lake: str, at: int) -> None:
        table, new = self._source(lake), f"c{self.columns}"
        names = [n for n in self.world.source.tables[table].columns if n != "id"]
        old = names[at % len(names)]
        self.columns += 1

        def step(row: dict[str, object]) -> None:
            row[new] = row.pop(old, None)

        self.world.alter(table, lambda: self.world.source.rename(table, old, new), step)

    @rule(lake=WHICH)
    def widen_column(self, lake: str) -> None:
        table = self._source(lake)
        ints = [n for n, kind in self.world.source.tables[table].columns.items() if kind == "int" and n != "id"]
        if ints:
            self.world.alter(table, lambda: self.world.source.modify(table, ints[0], "bigint"), lambda row: None)
            self.world.lakes[lake].other_types |= set(self.world.lakes[lake].pasts)

    @rule(lake=WHICH)
    def rename_table(self, lake: str) -> None:
        self.names += 1
        self.world.rename_table(self._source(lake), f"n{self.names}")

    # -- delivery ---------------------------------------------------------------------------------------------------

    @rule(seed=_SEEDS, count=st.integers(1, 40), in_order=st.booleans(), share=st.sampled_from([0.3, 0.7, 1.0, 1.0]))
    def deliver(self, seed: int, count: int, in_order: bool, share: float) -> None:
        self.world.deliver(random.Random(seed), count, in_order=in_order)
        self.world.run(share)
        self.changed = True

    @rule(seed=_SEEDS, count=st.integers(1, 10))
    def redeliver(self, seed: int, count: int) -> None:
        self.world.redeliver(random.Random(seed), count)
        self._run()

    # -- processes --------------------------------------------------------------------------------------------------

    @rule()
    def restart(self) -> None:
        self.world.stop()
        self._run()

    @rule()
    def lose_the_ledger(self) -> None:
        self.world.stop()
        (self.directory / ".binlake" / "shop" / "ledger.json").unlink(missing_ok=True)
        self._run()

    @rule(seed=_SEEDS, at=_CALLS, answer=st.sampled_from(Answer), arrives_at=_CALLS)
    def crash(self, seed: int, at: int, answer: Answer, arrives_at: int) -> None:
        self.world.deliver(random.Random(seed), 20, in_order=True)
        following = self.world.crash(at, answer, arrives_at, lambda fate: self.world.run(fate=fate))
        self.world.go_on(following)
        self.changed = True

    @rule(minutes=st.sampled_from([0.001, 1.0, 30.0, 90.0]))
    def pause(self, minutes: float) -> None:
        if self.time.ahead_ms < 10 * 3_600_000:  # deletes are remembered for a day
            self.time.ahead_ms += int(minutes * 60_000)

    # -- services ---------------------------------------------------------------------------------------------------

    def _service(self, lake: str, work: Callable[[HudiTable], object], crash: tuple[int, Answer, int] | None) -> None:
        def do(fate: object = None) -> None:
            table = self.world.open(lake, fate)  # type: ignore[arg-type]
            if table is not None:
                work(table)

        if crash is None:
            do()
        else:
            following = self.world.crash(*crash, do)
            self.world.go_on(following)
        self._run()

    _CRASH = st.one_of(st.none(), st.none(), st.tuples(_CALLS, st.sampled_from(Answer), _CALLS))

    @rule(lake=WHICH, crash=_CRASH)
    def compact(self, lake: str, crash: tuple[int, Answer, int] | None) -> None:
        self._service(lake, lambda table: run(table, COMPACTION, serially, now=True), crash)

    @rule(lake=WHICH, crash=_CRASH)
    def clean(self, lake: str, crash: tuple[int, Answer, int] | None) -> None:
        config = CleaningConfig(**self.world.plan.retention)
        self._service(lake, lambda table: clean(table, config), crash)

    @rule(lake=WHICH, crash=_CRASH)
    def archive(self, lake: str, crash: tuple[int, Answer, int] | None) -> None:
        config = CleaningConfig(**self.world.plan.retention)
        self._service(lake, lambda table: archive(table, ArchivalConfig(2, 3), config), crash)

    @rule(lake=WHICH, at=st.integers(0, 9), crash=_CRASH)
    def savepoint(self, lake: str, at: int, crash: tuple[int, Answer, int] | None) -> None:
        model = self.world.lakes[lake]
        if not model.pasts:
            return
        instant = sorted(model.pasts)[at % len(model.pasts)]
        table = self.world.open(lake)
        if table is None or instant not in {w.requested_time for w in table.timeline.completed()}:
            return  # it was archived
        self._service(lake, lambda table: create_savepoint(table, instant, "test"), crash)
        self._service(lake, lambda table: create_savepoint(table, instant, "test"), None)
        model.held.add(instant)

    @rule(lake=WHICH)
    def delete_savepoint(self, lake: str) -> None:
        model = self.world.lakes[lake]
        for instant in list(model.held):
            model.held.discard(instant)
            self._service(lake, lambda table, instant=instant: delete_savepoint(table, instant), None)  # type: ignore[misc]

    @rule(lake=WHICH, at=st.integers(0, 9), crash=_CRASH)
    def restore(self, lake: str, at: int, crash: tuple[int, Answer, int] | None) -> None:
        model = self.world.lakes[lake]
        if not model.pasts:
            return
        instant = sorted(model.pasts)[at % len(model.pasts)]

        def work(table: HudiTable) -> None:
            restore(table, instant)

        self.world.stop()
        try:
            table = self.world.open(lake)
            assert table is not None
            if crash is not None:
                self.world.crash(*crash, lambda fate: work(self.world.open(lake, fate)))  # type: ignore[arg-type]
                table = self.world.open(lake)
                assert table is not None
            work(table)
        except (ConfigError, UnsupportedError):
            self._run()
            return
        check_restored(self.world, lake, instant)
        model.take_back(instant)
        self._run()
        self.world.replay()  # records from the quarantine that were taken back wait again

    # -- others -----------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.world.knows_all_statements)
    @rule(lake=WHICH, key=st.integers(0, 7), number=st.integers(0, 9))
    def foreign_commit(self, lake: str, key: int, number: int) -> None:
        if self.world.open(lake) is None:
            return
        kinds = self.world.source.tables[self._source(lake)].columns
        ints = [n for n, kind in kinds.items() if kind in ("int", "bigint") and n != "id"][:1]
        self.world.write_foreign(lake, key, dict.fromkeys(ints, number))
        self.changed = True

    @precondition(lambda self: self.world.plan.framed)
    @rule(lake=WHICH, keys=st.lists(KEYS, min_size=1, max_size=3))
    def refuse_and_replay(self, lake: str, keys: list[int]) -> None:
        """A statement is refused for a while; the rows after it wait in the quarantine."""
        self.world.deliver(random.Random(0), 1 << 20, in_order=True)
        self._run()
        self.world.stop()
        self.world.policies = {"add": "refuse"}
        self.add_column(lake, 7)
        self.put(lake, keys, 1)
        self.world.deliver(random.Random(0), 1 << 20, in_order=True)
        self.world.run()
        self.world.stop()
        self.world.policies = {}
        self.world.run()
        self.world.replay()
        self.changed = True

    @invariant()
    def the_lake_is_the_model(self) -> None:
        if self.changed:
            self.changed = False
            check_lake(self.world)
