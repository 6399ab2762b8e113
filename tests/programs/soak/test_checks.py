"""The checks of the soak must notice what is wrong with a table, each in a way of its own; the sound one passes."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from binlake.decode.changes import SourceTable
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.lake import Lake
from demo.truth import TruthTable
from hudilake.errors import LakeError
from hudilake.storage import open_storage
from tests.binlake.stream.soundness import check_offsets
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, services
from tests.programs.soak.checks import Size, TableChecks, growth, spanned
from tests.programs.soak.setting import Bounds, document
from tests.programs.soak.source import SoakSource, wrong

_START_US = 1_795_242_000_123_456
_BATCHES, _TRANSACTIONS = 24, 25


class World:
    """The soak's source and settings over records in memory: many small batches, with compactions between them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        clock = count(_START_US, 3_571)
        self.source = SoakSource(11, lambda: next(clock), "soak")
        self.log = TopicLog()
        settings = document(directory, "soak", "127.0.0.1:1", list(self.source.topics()), "inline", Bounds(6, 8), 0)
        settings["kafka"]["ddl_topics"] = []
        settings["source"] = {"schemas": {f"live.{t.name}": t.schema() for t in self.source.tables}}
        self.config = Settings.model_validate(settings)
        root = open_storage(str(directory / "lake"), {"fsync": "false"})
        state = root.sub(".binlake/soak")
        ledger = Ledger("soak")
        self.runner = BatchRunner(self.config, Lake(root), state, ledger, SchemaRegistry(self.config), services())
        self.source.snapshot(0)
        for number in range(_BATCHES):
            for _ in range(_TRANSACTIONS):
                self._take()
            told = self.runner.run(number, self.log.end(), 0, LocalEngine(self.log))
            assert [t.error or t.warning for t in told.tables] == [None] * len(told.tables)
        self.truths = {truth.table: truth for truth in self.source.truth()}

    def _take(self) -> None:
        for message in self.source.transaction():
            place = self.log.records.setdefault((message.topic, message.partition), [])
            place.append((message.key, message.value))

    def changes_nothing(self, topic: str, partition: int, offset: int) -> bool:
        return self.log.records[(topic, partition)][offset][1] is None

    def check(self, name: str, lake: Path, truth: TruthTable | None = None) -> None:
        path = lake / self.config.table_rules(SourceTable("live", name)).path
        TableChecks(name, path, 200).against(truth or self.truths[name], self.changes_nothing, random.Random(1))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("soak"))
    yield made
    made.runner.close()


@pytest.fixture
def lake(world: World, tmp_path: Path) -> Path:
    """A copy of the lake, to be damaged."""
    return Path(shutil.copytree(world.directory / "lake", tmp_path / "lake"))


TABLES = ("accounts", "events", "visits")


@pytest.mark.full
@pytest.mark.parametrize("name", TABLES)
def test_a_sound_table_passes(world: World, lake: Path, name: str) -> None:
    world.check(name, lake)
    assert TableChecks(name, lake / "live" / name, 200).services()["compactions"] > 2


@pytest.mark.first(1)
@pytest.mark.parametrize("name", TABLES)
def test_another_cell_is_noticed(world: World, lake: Path, name: str) -> None:
    for seed in range(5):
        with pytest.raises(AssertionError, match="shows another"):
            world.check(name, lake, wrong(world.truths[name], random.Random(seed)))


@pytest.mark.parametrize("name", TABLES)
def test_a_missing_row_and_a_row_too_many_are_noticed(world: World, lake: Path, name: str) -> None:
    truth = world.truths[name]
    for rows in (truth.rows[1:], [*truth.rows, truth.rows[0][:1] + truth.rows[1][1:]]):
        with pytest.raises(AssertionError, match="shows another"):
            world.check(name, lake, replace(truth, rows=rows))


def newest(path: Path, pattern: str) -> Path:
    found = sorted(path.rglob(pattern), key=lambda f: max(re.findall(r"\d{17}", f.name)))
    return [f for f in found if ".hoodie" not in f.relative_to(path).parts or "timeline" in f.parts][-1]


def remove_a_log_file(path: Path) -> None:
    newest(path, ".*.log.*").unlink()


def remove_a_base_file(path: Path) -> None:
    newest(path, "*_*.parquet").unlink()


def remove_a_commit(path: Path) -> None:
    """From the middle, as if it had never been."""
    timeline = path / ".hoodie" / "timeline"
    found = sorted(timeline.glob("*_*.deltacommit"))
    for file in timeline.glob(f"{found[len(found) // 2].name.partition('_')[0]}*"):
        file.unlink()


def remove_the_index(path: Path) -> None:
    shutil.rmtree(path / ".hoodie" / "metadata" / "files")


def damage_a_log_file(path: Path) -> None:
    found = newest(path, ".*.log.*")
    data = bytearray(found.read_bytes())
    half = len(data) // 2
    data[half // 2 : half // 2 + half] = bytes(half)  # a single byte may be one that says nothing
    found.write_bytes(data)


@pytest.mark.first(4)
@pytest.mark.parametrize("name", ["accounts", "visits"])
@pytest.mark.parametrize(
    "damage", [remove_a_log_file, remove_a_base_file, remove_a_commit, remove_the_index, damage_a_log_file]
)
def test_damage_is_noticed(world: World, lake: Path, name: str, damage: Callable[[Path], None]) -> None:
    damage(lake / "live" / name)
    with pytest.raises((AssertionError, LakeError)):
        world.check(name, lake)


def test_a_gap_in_the_offsets_is_noticed(world: World, lake: Path) -> None:
    """Where every record of the gap is a tombstone it is none."""
    path = lake / "live" / "accounts"
    remove_a_commit(path)
    with pytest.raises(AssertionError, match="no commit has the offsets"):
        check_offsets(path, world.changes_nothing)
    check_offsets(path, lambda topic, partition, offset: True)


def test_growth_without_end_is_noticed() -> None:
    assert growth([10 * n for n in range(1, 13)]) > 1.5
    assert growth([1, 5, 100, 90, 110, 95, 105, 100, 99, 101]) < 1.5
    assert growth([1, 1000]) == 1.0


def test_too_long_a_timeline_is_noticed(world: World, lake: Path) -> None:
    table = TableChecks("events", lake / "live" / "events", 5)
    with pytest.raises(AssertionError, match="active commits"):
        table.stays_small()
    table = TableChecks("events", lake / "live" / "events", 200, [Size(1, 1, 1, 1, 1)] * 20)
    with pytest.raises(AssertionError, match="grows"):
        table.stays_small()


def test_what_lies_beside_a_compaction() -> None:
    within = spanned([("20240101000000000", "20240101000000500")])
    assert [within(f"2024010100000{n}") for n in ("0000", "0250", "0500", "0501")] == [True, True, True, False]
