"""Random batches into append tables against a list; deaths at storage calls."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlake.settings import Settings
from binlake.tables.audit import OFFSET_KEYS, audit
from hudilake.format.files.view import file_slices
from hudilake.format.timeline.timeline import Timeline
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream.test_exactly_once import runner
from tests.binlake.stream.topic_log import LocalEngine, TopicLog
from tests.hypothesis_profile import is_nightly, scaled
from tests.judges import hudi_rs
from tests.judges.agreement import read_ourselves
from tests.programs.crash_points.points import Trial, local_places
from tests.programs.crash_points.story import Place
from tests.whole.append.test_append_stream import append_settings, insert

#: File groups of about three batches each.
SMALL: dict[str, Any] = {"files": {"target_bytes": 9000, "small_bytes": 6000}}
COMPACTED: dict[str, Any] = {"compaction": {"mode": "inline", "after_commits": 2}, "retention": {"commits": 2}}
KINDS = ("merge_on_read", "copy_on_write")
#: For each batch the regions of its rows, and whether tasks write it.
BATCHES = st.lists(
    st.tuples(st.lists(st.sampled_from(["eu", "us", "asia"]), min_size=1, max_size=5), st.booleans()),
    min_size=1,
    max_size=6,
)


def shown(place: Path) -> list[list[tuple[int, str]]]:
    """Ids and regions of the rows, by our reader and by hudi-rs."""
    tables = [read_ourselves(place), hudi_rs.snapshot(place)]
    return [sorted(zip(*(t.column(n).to_pylist() for n in ("id", "region")), strict=True)) for t in tables]


def faults(place: Path) -> list[str]:
    """What fsck and the audit of the commits find wrong."""
    storage = open_storage(str(place))
    findings = [f for f in fsck(storage, OFFSET_KEYS, grace_ms=0).findings if f.severity is Severity.ERROR]
    return [f"{f.what} ({f.where})" for f in [*findings, *audit(storage).errors]]


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=scaled(6))
@given(batches=BATCHES, indexed=st.booleans())
def test_random_batches(kind: str, batches: list[tuple[list[str], bool]], indexed: bool) -> None:
    with TemporaryDirectory() as directory:
        log, sent, place = TopicLog(), list[tuple[int, str]](), Path(directory) / "shop" / "logs"
        rules = {"type": kind, "partition": {"column": "region"}, "metadata": {"enabled": indexed}, **SMALL}
        for number, (regions, by_tasks) in enumerate(batches):
            config = append_settings(Path(directory), by_tasks, **rules, **COMPACTED)
            stream = runner(config, open_storage(directory, {"fsync": "false"}))
            for region in regions:
                insert(log, len(sent), region)
                sent.append((len(sent), region))
            stream.run(number, log.end(), 0, LocalEngine(log))
            stream.close()
        assert shown(place) == [sorted(sent)] * 2
        assert faults(place) == []


@pytest.mark.parametrize(("kind", "small"), [("merge_on_read", 6000), ("copy_on_write", 2950)])
def test_files_grow_over_commits_until_they_are_full(tmp_path: Path, kind: str, small: int) -> None:
    config = append_settings(tmp_path, type=kind, files={"target_bytes": 9000, "small_bytes": small})
    log, stream = TopicLog(), runner(config, open_storage(str(tmp_path)))
    for batch in range(6):
        for n in range(batch * 20, batch * 20 + 20):
            insert(log, n)
        stream.run(batch, log.end(), 0, LocalEngine(log))
    storage = open_storage(str(tmp_path / "shop" / "logs"))
    slices = file_slices(storage, Timeline.load(storage))
    sizes = sorted(piece.base_size + piece.log_size for piece in slices)
    assert 1 < len(slices) < 6
    assert all(small <= size for size in sizes[1:])
    assert shown(tmp_path / "shop" / "logs") == [[(n, "eu") for n in range(120)]] * 2
    table = HudiTable.open(storage)
    stats = [s for i in table.timeline.completed() for s in table.timeline.commit_metadata(i).stats]
    assert sum(s.num_inserts for s in stats) == 120
    assert sum(s.num_update_writes for s in stats) == 0


@dataclass
class _Appended:
    """A batch into an append table that has been fed two. ``rules``: of the table."""

    rules: dict[str, Any]
    by_tasks: bool = False

    def _settings(self, place: Place) -> Settings:
        return append_settings(Path(place.uri), self.by_tasks, partition={"column": "region"}, **self.rules)

    def _run(self, place: Place, root: Storage, batch: int) -> None:
        log = TopicLog()
        for n in range((batch + 1) * 4):
            insert(log, n, "eu" if n % 3 else "us")
        stream = runner(self._settings(place), root)
        try:
            stream.run(batch, log.end(), 0, LocalEngine(log))
        finally:
            stream.close()

    def prepare(self, place: Place) -> None:
        self._run(place, place.open(), 0)
        self._run(place, place.open(), 1)

    def do(self, place: Place, root: Storage) -> None:
        self._run(place, root, 2)

    def trouble(self, place: Place) -> list[str]:
        return self._wrong(place, 2)

    def go_on(self, place: Place) -> list[str]:
        self._run(place, place.open(), 3)
        return self._wrong(place, 3) + faults(Path(place.uri) / "shop" / "logs")

    def _wrong(self, place: Place, batch: int) -> list[str]:
        wanted = [(n, "eu" if n % 3 else "us") for n in range((batch + 1) * 4)]
        return [f"{rows} for {wanted}" for rows in shown(Path(place.uri) / "shop" / "logs") if rows != wanted]


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "by_tasks"), [(k, t) for k, t in product(KINDS, (True, False)) if is_nightly() or t == (k == KINDS[0])]
)
def test_deaths_at_storage_calls(tmp_path: Path, kind: str, by_tasks: bool) -> None:
    work = _Appended({"type": kind, **COMPACTED}, by_tasks)
    assert Trial(work, local_places(tmp_path)).failures(None if is_nightly() else 1) == []
