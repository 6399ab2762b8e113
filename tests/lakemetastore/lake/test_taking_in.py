"""A state that takes in the timeline step by step is the state that is read anew from the table, at every moment."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hudilake.format.files.view import file_slices
from hudilake.metadata.config import MetadataConfig
from hudilake.services import archival, cleaning
from hudilake.services.archival import ArchivalConfig
from hudilake.services.cleaning import CleaningConfig
from hudilake.services.compaction import CompactionConfig, run
from hudilake.services.restore import restore
from hudilake.services.savepoint import create_savepoint, delete_savepoint
from hudilake.table.table import HudiTable
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.lake.differences import differences
from lakemetastore.lake.entries import FullState, LakeEntry
from lakemetastore.lake.fresh import renewed
from lakemetastore.lake.lake_tables import LakeTables, after
from lakemetastore.lake.naming import NamedTable
from lakemetastore.lake.opened import OpenedTable
from lakemetastore.lake.registration import Registration
from lakemetastore.lake.state import LakeState
from lakemetastore.lake.taking_in import next_entry
from lakemetastore.log.stores.opening import open_store
from tests.binlake.tables.clustered import ClusteredLake, drawn
from tests.hudilake import lake
from tests.hudilake.golden_kinds import extracted
from tests.hypothesis_profile import scaled
from tests.paths import GOLDEN
from tests.programs.crash_points.works import serially


class Follower:
    """A state that follows a table."""

    def __init__(self, place: Path) -> None:
        self.place, self.state, self.entries = place, LakeState(), list[LakeEntry]()

    def follow(self) -> None:
        """Take in what is new, and nothing a second time. The state is then the one read anew."""
        opened = OpenedTable.open(lake.storage_at(self.place))
        entry = next_entry(self.state, opened)
        if entry is not None:
            self.state = after(self.state, entry)
            self.entries.append(entry)
        assert next_entry(self.state, opened) is None
        assert differences(self.state, after(LakeState(), renewed(opened))) == []
        slices = [piece for path in self.state.partitions() for piece in self.state.slices(path)]
        assert slices == file_slices(opened.storage, opened.timeline)

    @property
    def renewals(self) -> int:
        """How often the state was read anew."""
        return sum(isinstance(entry, FullState) for entry in self.entries)


@pytest.mark.full
@pytest.mark.parametrize("kind", drawn("mor_record_index"))
def test_clusterings_and_compactions_are_taken_in(kind: str, tmp_path: Path) -> None:
    table = ClusteredLake(tmp_path, kind, "inline", retention=3)
    often, seldom = Follower(table.place), Follower(table.place)
    for number in range(9):
        table.change(3)
        table.insert(5)
        table.run()
        often.follow()
        if number % 4 == 3:
            seldom.follow()
    assert (often.renewals, seldom.renewals) == (1, 1)
    assert any(instant.replaced for instant in often.state.instants.values())


class History:
    """Random actions on a small table, and the times that a restore may go back to."""

    def __init__(self, path: Path, seed: int) -> None:
        self.random, self.order = random.Random(seed), 0
        self.options: dict[str, Any] = {"metadata": MetadataConfig() if seed % 3 else None}
        kind = self.random.choice(("merge_on_read", "copy_on_write"))
        self.table = lake.new_table(path, **self.options, table_type=kind, partitioned=bool(seed % 2))

    def commit(self) -> None:
        self.order += 1
        day = self.random.choice(("d1", "d2"))
        lake.commit(self.table, lake.upserts(self.random.sample(range(20), 3), self.order, day=day))

    def compact(self) -> None:
        if not self.table.config.kind.copies:
            run(self.table, CompactionConfig(after_commits=1, log_ratio=None), serially, now=True)

    def clean(self) -> None:
        cleaning.clean(self.table, CleaningConfig(commits=2))

    def archive(self) -> None:
        archival.archive(self.table, ArchivalConfig(min_commits=3, max_commits=4), CleaningConfig(commits=2))

    def roll_back(self) -> None:
        """A commit dies after its files were written."""
        instant = self.table.begin()
        lake.write(self.table, instant, lake.upserts([1, 2], self.order))
        self.table.abort(instant)

    def leave_pending(self) -> None:
        """A commit dies; the next writer rolls it back."""
        lake.write(self.table, self.table.begin(), lake.upserts([1, 2], self.order))
        self.reopen()

    def reopen(self) -> None:
        self.table = HudiTable.open(self.table.storage, **self.options)

    def save(self) -> None:
        if writes := self.table.timeline.completed():
            create_savepoint(self.table, writes[-1].requested_time, "test")

    def release(self) -> None:
        for saved in self.table.timeline.completed_actions({"savepoint"}):
            delete_savepoint(self.table, saved.requested_time)
        self.reopen()

    def restore(self) -> None:
        self.release()
        restore(self.table, self.table.timeline.completed()[-3:][0].requested_time)
        self.reopen()

    def step(self) -> None:
        """One action."""
        weights: Mapping[Callable[[], None], int] = {
            self.commit: 10,
            self.compact: 3,
            self.clean: 3,
            self.archive: 3,
            self.roll_back: 2,
            self.save: 1,
            self.release: 1,
        }
        self.random.choices(list(weights), list(weights.values()))[0]()


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", range(scaled(40, least=2, divisor=20)))
def test_a_random_history_is_taken_in(seed: int, tmp_path: Path) -> None:
    history = History(tmp_path / "t", seed)
    often, seldom = Follower(tmp_path / "t"), Follower(tmp_path / "t")
    for _ in range(25):
        history.step()
        often.follow()
        if history.random.random() < 0.2:
            seldom.follow()
    seldom.follow()
    assert often.renewals == 1
    for last in (history.commit, history.commit, history.restore, history.commit, history.leave_pending):
        last()
        often.follow()
    history.table.rollback_pending()
    often.follow()


def test_a_table_made_anew_at_the_place_is_read_anew(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "t")
    for renewals in (1, 2):
        lake.commit(lake.new_table(tmp_path / "t", MetadataConfig()), lake.upserts([1], 1))
        follower.follow()
        assert follower.renewals == renewals
        shutil.rmtree(tmp_path / "t")


@pytest.mark.first(6)
@pytest.mark.parametrize("kind", sorted(path.name.removesuffix(".tar.gz") for path in (GOLDEN / "kinds").glob("*.gz")))
def test_tables_that_hudi_wrote_are_taken_in(kind: str, tmp_path: Path) -> None:
    place = extracted(kind, tmp_path)
    follower = Follower(place)
    follower.follow()
    storage = lake.storage_at(place)
    assert OpenedTable.open(storage).schema_text() == follower.state.schema()
    lakes = LakeTables(open_store(str(tmp_path / "store")))
    registration = Registration(Catalog(lakes.store), lakes)
    done = registration.register(NamedTable(storage, "golden", kind))
    assert len(done.created) in (1, 3)
    assert done.added == len(done.created) * len(follower.state.seen()) * bool(
        OpenedTable.open(storage).config.partition_fields
    )
