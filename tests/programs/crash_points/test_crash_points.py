"""Each piece of work dies, or gets an error, at its storage calls, in each kind of store.

A usual run takes one call of each work for each answer; a nightly run takes all on local disk, and some elsewhere,
where a call takes longer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import BUCKET
from tests.hypothesis_profile import is_nightly, scaled
from tests.programs.crash_points.ddl_work import Statements
from tests.programs.crash_points.points import Trial, Work, local_places
from tests.programs.crash_points.replay_works import Dump, DumpReplay, QuarantineReplay
from tests.programs.crash_points.story import Place
from tests.programs.crash_points.wide_work import WideBatch
from tests.programs.crash_points.works import (
    Batch,
    Clustered,
    Rebucketed,
    Resized,
    Restored,
    Upkeep,
    clean_up,
    compact,
    compact_twice,
    go_back,
    hold,
    put_away,
)
from tests.selection import first
from tests.services.s3 import S3Server

_COMPACTED: dict[str, Any] = {"compaction": {"mode": "inline", "after_commits": 2}, "retention": {"commits": 1}}
COMPACTED = {"defaults": _COMPACTED}
#: Rows move between partitions.
_LOOKED_UP: dict[str, Any] = {"index": {"type": "global_simple"}}
LOOKED_UP = {"defaults": _LOOKED_UP}
LOOKED_UP_COMPACTED = {"defaults": {**_COMPACTED, **_LOOKED_UP}}
LOOKED_UP_COPIES = {"defaults": {"type": "copy_on_write", **_LOOKED_UP}}
UNINDEXED = {"defaults": {"metadata": {"enabled": False}}}
COPIED = {"defaults": {"type": "copy_on_write", "retention": {"commits": 4}}}
RINGS = {"defaults": {"index": {"type": "consistent_bucket"}}}
#: How many points of each answer; None for all.
_HERE = None if is_nightly() else 1
_ELSEWHERE = scaled(5, least=1)
#: The work on tables.
WORKS: dict[str, Work] = {
    "the first batch": Batch(first=True),
    "a batch": Batch(),
    "a batch written by tasks": Batch({"batch": {"shuffle_above_bytes": 0}}),
    "a batch, compaction and clean": Batch(COMPACTED),
    "a batch that is looked up": Batch(LOOKED_UP_COMPACTED, before=LOOKED_UP),
    "a batch that is looked up, copy on write": Batch(LOOKED_UP_COPIES, before=LOOKED_UP_COPIES),
    "compaction": Upkeep(compact),
    "clean": Upkeep(clean_up, compact_twice, keeps=0),
    "archival": Upkeep(put_away, compact_twice, keeps=0, more=UNINDEXED),
    "savepoints": Upkeep(hold),
    "other buckets": Rebucketed(clean_up),
    "a split bucket": Resized(clean_up, more=RINGS),
    "clustering": Clustered(clean_up, keeps=1, more=LOOKED_UP),
    "the first batch to hash rings": Batch(RINGS, first=True),
    "restore": Restored(go_back, keeps=2),
    "a batch of copy-on-write tables": Batch(COPIED, before=COPIED),
    "restore of copy-on-write tables": Restored(go_back, keeps=2, more=COPIED),
    "statements": Statements(),
    "the first batch of a wide table": WideBatch(first=True),
    "a batch of a wide table, compaction and clean": WideBatch(more=_COMPACTED),
}
#: Those that make test takes: each table service, DDL, and the batches that differ most.
TAKEN = (
    *("the first batch", "a batch written by tasks", "a batch, compaction and clean", "a batch that is looked up"),
    *("compaction", "clean", "archival", "other buckets", "restore", "statements"),
)
#: Those that are tried in other stores: one of them in a usual run.
ELSEWHERE = ["statements", "a batch, compaction and clean", "restore"][: 3 if is_nightly() else 1]


@pytest.mark.full
@pytest.mark.parametrize("work", first(len(TAKEN), sorted(WORKS, key=lambda work: work not in TAKEN)))
def test_work_on_tables(tmp_path: Path, work: str) -> None:
    assert Trial(WORKS[work], local_places(tmp_path)).failures(_HERE) == []


@pytest.mark.full
@pytest.mark.parametrize("into_nothing", [True, False], ids=["into nothing", "into tables"])
def test_a_replay_of_dumps(tmp_path: Path, into_nothing: bool) -> None:
    work = DumpReplay(tmp_path / "dumps", into_nothing)
    assert Trial(work, local_places(tmp_path / "lakes")).failures(_HERE) == []


def test_a_replay_of_quarantined_records(tmp_path: Path) -> None:
    assert Trial(QuarantineReplay(), local_places(tmp_path)).failures(_HERE) == []


def test_dumping(tmp_path: Path) -> None:
    assert Trial(Dump(), local_places(tmp_path)).failures(_HERE) == []


@pytest.mark.full
@pytest.mark.parametrize("work", ELSEWHERE)
def test_in_an_object_store(s3_server: S3Server, work: str) -> None:
    places = lambda name: Place(f"s3://{BUCKET}/crash/{work}/{name}", s3_server.options())  # noqa: E731
    assert Trial(WORKS[work], places).failures(_ELSEWHERE) == []
