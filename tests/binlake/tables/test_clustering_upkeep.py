"""What else is done to tables knows of clusterings: reads of the past, cleaning, archival, restore, fsck."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from binlake.tables.definition import metadata_config
from hudilake.read import Incremental, Snapshot, TableReader
from hudilake.services.fsck import Severity, fsck
from hudilake.services.restore import restore
from hudilake.services.savepoint import create_savepoint
from hudilake.storage import open_storage
from tests.binlake.tables.clustered import ClusteredLake, drawn
from tests.binlake.tables.clusterer import Clusterer

Past = Counter[tuple[object, ...]]
NAMES = ("id", "owner", "region")


def shown(here: ClusteredLake, query: Snapshot | Incremental) -> Past:
    """The rows that a question gives."""
    rows = TableReader.open(open_storage(str(here.place))).read(query, columns=NAMES).read_all()
    return Counter(zip(*(rows.column(name).to_pylist() for name in NAMES), strict=True))


def state(here: ClusteredLake) -> Past:
    """The source's rows."""
    return Counter((key, *row) for key, row in here.rows.items())


@pytest.mark.parametrize("kind", drawn("mor_record_index"))
def test_reads_of_the_past(tmp_path: Path, kind: str) -> None:
    """As of each commit, and what changed since: a clustering changes nothing."""
    here, pasts = ClusteredLake(tmp_path, kind, "inline"), dict[str, tuple[str, Past]]()
    for _ in range(5):
        told = here.batch()
        assert told.commit_instant is not None
        done = here.table().timeline.find(told.commit_instant)
        assert done is not None
        pasts[done.requested_time] = done.completion_time or "", state(here)
    (clustering,) = here.clusterings()
    assert any(instant < clustering.requested_time for instant in pasts)
    assert any(instant > clustering.requested_time for instant in pasts)
    for instant, (completion, then) in pasts.items():
        assert shown(here, Snapshot(instant)) == then
        assert shown(here, Incremental(completion)) == state(here) - then
    before = max(instant for instant in pasts if instant < clustering.requested_time)
    assert shown(here, Snapshot(clustering.requested_time)) == pasts[before][1]
    assert shown(here, Incremental(pasts[before][0], clustering.completion_time or "")) == Counter()


@pytest.mark.full
@pytest.mark.parametrize("kind", drawn("cow_bloom"))
def test_replaced_files_go_and_old_clusterings_are_archived(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("binlake.tables.services.policy._SPARE_COMMITS", 1)
    monkeypatch.setattr("binlake.tables.services.policy._ARCHIVED_AT_ONCE", 2)
    here = ClusteredLake(tmp_path, kind, "inline", retention=2)
    for _ in range(3):
        here.batch()
    first = {path.name.split("_")[0].lstrip(".") for path in here.place.rglob("*.parquet")}
    for _ in range(13):
        here.batch(inserts=3, changes=2)
    left = {path.name.split("_")[0] for path in here.place.glob("region=*/*.parquet")}
    assert len(first & left) <= len(here.groups("eu")) + len(here.groups("us"))
    assert here.table().timeline.history().files
    here.start()
    here.batch()


@pytest.mark.parametrize("kind", drawn("append"))
def test_restore_to_before_a_clustering(tmp_path: Path, kind: str) -> None:
    here = ClusteredLake(tmp_path, kind, "process")
    for _ in range(2):
        here.batch()
    last = here.table().timeline.newest_first()[0]
    then, groups = state(here), here.groups("eu")
    create_savepoint(here.table(), last.requested_time, "test")
    clusterer = Clusterer(here)
    done = clusterer.whole()
    assert done is not None
    assert done.completed
    here.batch()
    clusterer.plan()  # it is taken back, too
    table = here.table()
    restore(table, last.requested_time, metadata_config(clusterer.table.rules))
    assert shown(here, Snapshot()) == then
    assert here.groups("eu") == groups
    assert here.pending() == []
    here.go_on()
    assert Clusterer(here).whole() is not None
    here.batch()


def test_fsck_tells_a_plan_that_cannot_be_read(tmp_path: Path) -> None:
    here = ClusteredLake(tmp_path, "cow_bloom", "process")
    here.batch()
    planned = Clusterer(here).plan()
    assert planned is not None
    storage = open_storage(str(here.place))
    (told,) = [finding for finding in fsck(storage, grace_ms=0).findings if finding.instant == planned.requested_time]
    assert (told.severity, told.what) == (Severity.INFO, "a clustering is requested")
    storage.write(planned.path, b"junk")
    errors = [finding.what for finding in fsck(storage, grace_ms=0).findings if finding.severity is Severity.ERROR]
    assert ["the plan of a pending clustering cannot be read" in what for what in errors] == [True]
