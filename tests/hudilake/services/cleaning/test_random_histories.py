"""Random lives of a table: a moment can be read exactly as long as the files of its slices are there."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hudilake.commit.savepoint_record import savepoints
from hudilake.errors import UnsupportedError
from hudilake.format.files.view import file_slices
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.savepoint import create_savepoint, delete_savepoint
from tests.hudilake.lake import Change, data_files, deletes, upserts
from tests.hudilake.services.cleaning.aged import Aged


def files_now(aged: Aged) -> set[str]:
    """The files of the newest slices."""
    slices = file_slices(aged.table.storage, aged.table.timeline)
    return {f.path for s in slices for f in (s.base_file, *s.log_files) if f is not None}


def changes(turn: int, chance: random.Random) -> list[Change]:
    """Some rows of a few partitions."""
    day = f"d{chance.randrange(4)}"
    keys = chance.sample(range(8), 4)
    return upserts(keys[:3], turn, f"v{turn}-", day) + deletes(keys[3:], turn, day)


@pytest.mark.first(2)
@pytest.mark.parametrize("seed", [0, 1, 3, 4, 5, 7])
@pytest.mark.parametrize("indexed", [False, True])
def test_a_moment_is_refused_exactly_if_files_of_it_are_gone(tmp_path: Path, seed: int, indexed: bool) -> None:
    chance = random.Random(seed)
    aged = Aged(tmp_path, indexed)
    needed: dict[str, set[str]] = {}
    readable = refused = 0
    for turn in range(32):
        aged.order = 100 + turn
        action = chance.random()
        known = len(aged.moments)
        if action < 0.6 or turn < 2:
            aged.write(changes(aged.order, chance))
        elif action < 0.8 and files_now(aged) and aged.moments[-1][0] != _last_compaction(aged):
            aged.compact()
        elif action < 0.9:
            clean(aged.table, CleaningConfig(commits=chance.choice([1, 3, 6])))
        elif action < 0.94:
            create_savepoint(aged.table, aged.moments[-1][0], "me")
        elif (found := savepoints(aged.table.storage, aged.table.timeline)) and action < 0.97:
            delete_savepoint(aged.table, found[0].instant)
        elif seed % 2:
            archive(aged.table, ArchivalConfig(4, 6), CleaningConfig(commits=6))
        for instant, _ in aged.moments[known:]:
            needed[instant] = files_now(aged)
        if turn % 8 == 7:
            aged.reopen()
    aged.check()
    there = set(data_files(tmp_path))
    archived = bool(aged.table.timeline.history().files)
    for instant, rows in aged.moments:
        try:
            assert aged.as_of(instant) == rows, instant
            readable += 1
        except UnsupportedError:
            refused += 1
            # Where commits are archived less is known: a time may be refused though all is there.
            assert not needed[instant] <= there or archived
            continue
        assert needed[instant] <= there
    assert readable
    assert refused


def _last_compaction(aged: Aged) -> str:
    done = [i for i in aged.table.timeline.completed() if i.action == "commit"]
    return done[-1].requested_time if done else ""
