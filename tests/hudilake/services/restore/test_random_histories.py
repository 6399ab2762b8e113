"""Random lives of a table, in which it is put back again and again, to any moment whose files are there: then it is
what it was at that moment.

The control never takes compactions back, and must be seen to give wrong rows or to lose files.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hudilake.commit.savepoint_record import savepoints
from hudilake.errors import ConfigError, LakeError, UnsupportedError
from hudilake.format.files.view import file_slices
from hudilake.format.timeline.instant import COMMIT, Instant
from hudilake.format.timeline.timeline import Timeline
from hudilake.services import restore_plan
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.compaction import finish_pending, schedule
from hudilake.services.savepoint import create_savepoint, delete_savepoint
from tests.hudilake.lake import data_files
from tests.hudilake.services.cleaning.aged import COMPACTION, serially
from tests.hudilake.services.restore.past import Past, changes
from tests.hypothesis_profile import usually

STEPS = 40


class Life:
    """One random history. ``needed``: the files of the newest slices at each moment."""

    def __init__(self, path: Path, seed: int, indexed: bool) -> None:
        self.chance, self.seed = random.Random(seed), seed
        self.past = Past(path, indexed, buckets=1 + seed % 2)
        self.needed: dict[str, set[str]] = {}
        self.restored = self.refused = 0

    def run(self) -> None:
        for turn in range(STEPS):
            self.past.order = 100 + turn
            known = set(self.needed)
            self._step(self.chance.random() if turn > 2 else 0.0)
            self._note(known)
            if self.chance.random() < 0.15:
                self.past.recover()
        self.past.check()

    def _step(self, action: float) -> None:
        past, chance = self.past, self.chance
        found = savepoints(past.table.storage, past.table.timeline)
        if action < 0.5:
            past.write(changes(past.order, chance))
        elif action < 0.62:
            self._compact()
        elif action < 0.7:
            clean(past.table, CleaningConfig(commits=chance.choice([1, 3, 6])))
        elif action < 0.73:
            create_savepoint(past.table, past.moments[-1][0], "me")
        elif action < 0.76 and found:
            delete_savepoint(past.table, chance.choice(found).instant)
        elif action < 0.8 and self.seed % 2:
            archive(past.table, ArchivalConfig(4, 6), CleaningConfig(commits=6))
        elif action < 0.86:
            schedule(past.table, COMPACTION)
        else:
            self._restore()

    def _compact(self) -> None:
        past = self.past
        if past.table.timeline.pending():
            for done in finish_pending(past.table, COMPACTION, serially):
                past.moments.append((done.requested_time, past.model.rows()))
                past.states[done.requested_time] = dict(past.model.state)
        elif past.table.timeline.completed()[-1].action != COMMIT and schedule(past.table, COMPACTION) is not None:
            self._compact()

    def _note(self, known: set[str]) -> None:
        table = self.past.table
        for instant in self.past.states.keys() - known:
            slices = file_slices(table.storage, table.timeline)
            self.needed[instant] = {f.path for s in slices for f in (s.base_file, *s.log_files) if f is not None}

    def _restore(self) -> None:
        past = self.past
        instant, rows = self.chance.choice(past.moments)
        try:
            restore_plan.plan_restore(past.table, instant)
        except (ConfigError, UnsupportedError) as refusal:
            self.refused += 1
            self._is_right(instant, refusal)
            return
        completed_later = past.states[instant]
        past.restore(instant)
        assert past.states[instant] == completed_later
        assert past.model.rows() == rows
        self.restored += 1
        past.check()

    def _is_right(self, instant: str, refusal: LakeError) -> None:
        """Refused for a reason: files are gone, the commit is archived, or a savepoint holds a later one."""
        table = self.past.table
        absent = not self.needed[instant] <= set(data_files(self.past.path))
        archived = bool(table.timeline.history().files)
        later = any(s.instant > instant for s in savepoints(table.storage, table.timeline))
        assert absent or archived or later, refusal


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("indexed", usually([True], [False, True]))
def test_the_table_is_what_it_was(tmp_path: Path, seed: int, indexed: bool) -> None:
    life = Life(tmp_path, seed, indexed)
    life.run()
    assert life.restored


@pytest.mark.parametrize("indexed", usually([True], [False, True]))
def test_control_a_restore_that_leaves_compactions_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indexed: bool
) -> None:
    is_later = restore_plan._is_later

    def spare_compactions(timeline: Timeline, write: Instant, target: Instant) -> bool:
        return write.action != COMMIT and is_later(timeline, write, target)

    monkeypatch.setattr(restore_plan, "_is_later", spare_compactions)
    for seed in range(8):
        try:
            Life(tmp_path / str(seed), seed, indexed).run()
        except (AssertionError, LakeError):
            return
    pytest.fail("no difference was noticed")
