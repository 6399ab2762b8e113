"""A replay that dies after calls that change the store, and one that goes on afterwards."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest

from pipeline.lake.audit import audit
from pipeline.settings import Settings
from pipeline.source.dump_layout import Window
from pipeline.storage import open_storage
from tests.replay.dumped import HOUR, replay, settings
from tests.replay.test_replay import check, dumped
from tests.stream.dying_store import DyingStore, Fate, Killed
from tests.stream.soundness import errors_in
from tests.stream.test_exactly_once import CHANGING, EXPECTED

LAYOUT = "{database}.{table}/dt={date}/hour={hour}/*"
COMPACTED = {"defaults": {"buckets": 2, "compaction": {"mode": "inline", "after_commits": 2}}}


def _settings(lake: Path, dumps: Path, base_files: int | None) -> Settings:
    dump = {"path": LAYOUT, "base_files_from_rows": base_files}
    tables = COMPACTED if base_files is None else {"defaults": {"buckets": 2}}
    return settings(lake, dumps, dump=dump, tables=tables, locking={"lock": "process"})


@pytest.mark.parametrize(("first", "base_files"), [(True, 2), (False, None)], ids=["into nothing", "into tables"])
def test_death_while_the_store_changes(tmp_path: Path, first: bool, base_files: int | None) -> None:
    dumps, base = tmp_path / "dumps", tmp_path / "base"
    dumped(dumps)
    window = Window() if first else Window(HOUR + 1)
    if first:
        base.mkdir()
    else:
        replay(_settings(base, dumps, base_files), Window(HOUR, HOUR + 1))
    counting = Fate()
    shutil.copytree(base, tmp_path / "count")
    replay(
        _settings(tmp_path / "count", dumps, base_files),
        window,
        root=DyingStore(open_storage(str(tmp_path / "count"), {"fsync": "false"}), counting),
    )
    deltas = _commits(tmp_path / "count")
    changes = [at for at, (method, _) in enumerate(counting.calls) if method in CHANGING]
    assert len(changes) > 20
    # all that changes a state, and of the other files some: what is left of one is left of another
    chosen = [at for n, at in enumerate(changes) if counting.calls[at][0] == "create" or n % (2 if first else 3) == 0]
    for turn, (at, before) in enumerate([(changes[0], True), *((at, False) for at in chosen)]):
        lake = tmp_path / f"{at}-{before}"
        shutil.copytree(base, lake)
        config, store = _settings(lake, dumps, base_files), open_storage(str(lake), {"fsync": "false"})
        fate = Fate(at, before)
        with contextlib.suppress(Killed):
            replay(config, window, root=DyingStore(store, fate))
        fate.settle()
        replay(config, window)
        assert _commits(lake) == deltas, fate.calls[-1]
        assert replay(config, window).taken == [], fate.calls[-1]
        check(lake)
        for table in EXPECTED if turn % 5 == 0 else ():
            assert errors_in(lake / "shop" / table) == [], fate.calls[-1]
            assert audit(open_storage(str(lake / "shop" / table))).errors == []
        shutil.rmtree(lake)


def _commits(lake: Path) -> int:
    return len(list(lake.glob("shop/*/.hoodie/timeline/*_*.deltacommit")))
