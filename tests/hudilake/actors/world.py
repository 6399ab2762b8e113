"""A table that several actors have open, each as a process of its own would, and what it must be afterwards."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path

from hudilake.format.timeline.instant import COMPLETED_ACTIONS
from hudilake.format.timeline.timeline import Timeline
from hudilake.locking.choose import LockConfig
from hudilake.locking.heartbeat import HEARTBEAT_PATH
from hudilake.locking.ownership import Locking
from hudilake.locking.process_identity import ProcessIdentity, this_process
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import Conflicts
from hudilake.services.compaction import CompactionConfig, run
from hudilake.services.fsck import fsck
from hudilake.storage.base import Storage
from hudilake.table.table import HudiTable
from tests.hudilake.lake import SCHEMA, Change, Model, commit, config, deletes, ours, rs, storage_at, upserts
from tests.hudilake.metadata.below import Counting
from tests.hudilake.services.compaction.steps import serially

#: Tidies its own files up every few commits, so that these orders meet that too.
INDEX = MetadataConfig(compact_after=3, compact_at_most=3, archive_after=8, archive_keep=4)
COMPACTION = CompactionConfig(after_commits=1, tombstone_retention_hours=1)
State = dict[tuple[str, int], Change]
#: The key under which writers count their commits.
POSITIONS = "tests.positions"
#: No beat and no renewal falls into a test.
LOCKING = LockConfig(heartbeat_timeout_s=36_000, validity_s=36_000, renew_s=3_600)


@dataclass
class World:
    """One table.

    Args:
        path: its root.
        indexed: whether it keeps a metadata table.
        states: what it held after the writes of the template, by their requested times.
        told: what the actors were told has happened, by completion time: the changes of a commit, or the write that was
            restored to. That is its order: times are taken under the lock.
        calls: every owner's storage calls.
        policy: what the commits of its writers may do side by side.
        positions: by writer, how many commits of those that count them have completed.
    """

    path: Path
    indexed: bool
    states: dict[str, State] = field(default_factory=dict)
    told: dict[str, Sequence[Change] | str] = field(default_factory=dict)
    calls: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    policy: Conflicts = "queue"
    positions: dict[str, int] = field(default_factory=dict)

    @property
    def index(self) -> MetadataConfig | None:
        """How its metadata table is kept."""
        return INDEX if self.indexed else None

    def door(self, owner: str) -> Path:
        """A path of the table that is this owner's alone: locks within the process go by the path, so that only the
        lock on storage keeps owners apart."""
        door = self.path.with_name(f"{self.path.name} of {owner}")
        if not door.is_symlink():
            door.symlink_to(self.path)
        return door

    def storage(self, owner: str) -> Storage:
        """The table's root as that owner's process has it."""
        return storage_at(self.door(owner))

    def opened(self, owner: str) -> HudiTable:
        """The table as that owner's process has it; its storage calls are noted."""
        storage = Counting(self.storage(owner), self.calls.setdefault(owner, []))
        return HudiTable.open(storage, metadata=self.index, locking=Locking(LOCKING, owner), conflicts=self.policy)

    def model(self) -> Model:
        """What it must hold now."""
        model = Model(dict(list(self.states.values())[-1]))
        for _, what in sorted(self.told.items()):
            if isinstance(what, str):
                model.state = dict(self.states[what])
            else:
                model.apply(what)
        return model

    def twin(self, path: Path) -> World:
        """The same table at another path. Files are never changed in place, so they are linked."""
        shutil.copytree(self.path, path, copy_function=os.link)
        return World(path, self.indexed, self.states, policy=self.policy)

    def remove(self) -> None:
        """The table and its doors are no more."""
        for owner in self.calls:
            self.door(owner).unlink()
        shutil.rmtree(self.path)

    def done(self) -> set[str]:
        """The actions that have completed since the template, and "archival" if instants have left the timeline."""
        now = Timeline.load(storage_at(self.path))
        last = max(self.states)
        found = {i.action for i in now.completed_actions(COMPLETED_ACTIONS) if i.requested_time > last}
        first = min(i.requested_time for i in now.completed())
        return found | ({"archival"} if first > min(self.states) else set())

    def bury(self, owner: str) -> None:
        """What a dead process leaves: its heartbeats stay, and say that they were those of a process that is gone."""
        for beat in self.path.glob(f"{HEARTBEAT_PATH}/*"):
            said = json.loads(beat.read_text())
            if said["owner"] == owner:
                beat.unlink()  # a link to the template's must not be written to
                beat.write_text(json.dumps({**said, "process": asdict(_gone())}))

    def trouble(self, *, rust: bool = False) -> list[str]:
        """Everything that is not as it must be once all actors are through."""
        rows = self.model().rows()
        recorded = json.loads(HudiTable.open(storage_at(self.path)).extra_metadata(POSITIONS) or "{}")
        found = [] if recorded == self.positions else [f"positions {recorded} for {self.positions}"]
        found += [f"{f.severity}: {f}" for f in fsck(storage_at(self.path)).findings if f.severity != "info"]
        found += _differences("our reader", ours(self.path), rows)
        if rust:
            found += _differences("hudi-rs", rs(self.path), rows)
        found += [f"pending: {i.file_name}" for i in Timeline.load(storage_at(self.path)).pending()]
        index = Timeline.load(storage_at(self.path).sub(".hoodie/metadata"))
        found += [f"pending in the metadata table: {i.file_name}" for i in index.pending()]
        hoodie = self.path / ".hoodie"
        left = [*hoodie.glob(".heartbeat/*"), *hoodie.glob("lock"), *hoodie.glob(".locks/*"), *hoodie.glob(".temp/*")]
        return found + [f"left: {file.relative_to(self.path)}" for file in left]


def _differences(who: str, found: Sequence[object], wanted: Sequence[object]) -> list[str]:
    lost, odd = [r for r in wanted if r not in found], [r for r in found if r not in wanted]
    if found == wanted:
        return []
    return [f"{who} lacks {lost}", f"{who} has {odd} too", f"{who}: {len(found)} rows for {len(wanted)}"]


@lru_cache(maxsize=1)
def _gone() -> ProcessIdentity:
    """A process of this machine that is no more."""
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    here = this_process()
    return ProcessIdentity(here.host, process.pid, here.started - 1, here.place)


def template(path: Path, indexed: bool, buckets: int = 1) -> World:
    """A small table that has been compacted, with something to compact, to clean and to archive."""
    world, model = World(path, indexed), Model()
    table = HudiTable.create(storage_at(path), config(buckets=buckets), SCHEMA, world.index)
    history = [upserts(range(5), 100), upserts([1], 110, "late"), deletes([3], 120), upserts([0], 130, "later")]
    for number, changes in enumerate([*history, upserts([4], 140, "last")]):
        model.apply(changes)
        world.states[commit(table, changes)] = dict(model.state)
        assert table.maintain() is None
        if number % 2:
            (done,) = run(table, COMPACTION, serially)
            world.states[done.requested_time] = dict(model.state)
    return world
