"""Single buckets of a table with consistent hashing split and merged while rows are written to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from binlake.tables.bucket_sizes import proposed
from binlake.tables.lake_table import LakeTable
from binlake.tables.rebucket import resize
from hudilake.commit.commit import OvertakenError
from hudilake.errors import ConfigError
from hudilake.format.definition.consistent import COMMIT_SUFFIX, HASHING_PATH, hashing_file
from hudilake.services.fsck import fsck
from hudilake.services.rebucket.move import MovedUnit
from hudilake.services.rebucket.steps import RebucketResult, rings_of
from hudilake.services.rebucket.units import BucketChange, RebucketUnit
from hudilake.services.restore import restore
from hudilake.table.table import HudiTable
from tests.binlake.rows.upsert.ingest import STREAM, TOPIC, Ingest, Kind, rows_of
from tests.binlake.rows.upsert.test_route import row
from tests.binlake.tables.test_rebucket import KEEP, ids, in_turn, inserts, stored
from tests.judges.agreement import assert_judges_agree
from tests.model import Change, Delivered, Shape

SHAPE = Shape(("id",))


def lake(path: Path, shape: Shape = SHAPE) -> Ingest:
    return Ingest.at(path, shape, kind=Kind(index="consistent_bucket"))


def opened(here: Ingest) -> LakeTable:
    return LakeTable.open(here.root.sub(here.rules.path), here.rules)


def resized(here: Ingest, *wanted: BucketChange, meanwhile: Callable[[], object] | None = None) -> RebucketResult:
    """Resize as a process of its own does; ``meanwhile`` runs once after the first pass."""
    waiting = [meanwhile] if meanwhile is not None else []

    def work(function: Callable[[RebucketUnit], MovedUnit], planned: Sequence[RebucketUnit]) -> list[MovedUnit]:
        done = in_turn(function, planned)
        while waiting:
            waiting.pop()()
        return done

    return resize(opened(here), wanted, STREAM, KEEP, work)


def errors(here: Ingest) -> list[str]:
    found = fsck(here.root.sub(here.rules.path)).findings
    return [f"{one.path}: {one.what}" for one in found if one.severity.name in ("ERROR", "WARNING")]


def test_a_split_and_a_merge_move_the_rows_of_their_buckets_alone(tmp_path: Path) -> None:
    here = lake(tmp_path)
    here.run(inserts(0, 60))
    here.run([Delivered(Change(900, 0, row(3), None), 0, 60)])
    before, first = stored(here), opened(here)
    others = {piece.file_id for piece in first.hudi.file_slices() if first.rows.place_of(piece)[1] == 1}
    split = resized(here, BucketChange("", (0,)))
    table = opened(here)
    ring = rings_of(table.hudi, "t").ring("")
    assert (len(ring.nodes), ring.num_buckets, ring.seq_no, ring.instant) == (3, 2, 1, split.instant)
    assert others < {piece.file_id for piece in table.hudi.file_slices()} <= {node.file_id for node in ring.nodes}
    assert stored(here) == before
    assert_judges_agree(here.uri, rows_of(here.root))
    resized(here, BucketChange("", (1, 2)))
    assert rings_of(opened(here).hudi, "t").count("") == 2
    assert stored(here) == before
    assert errors(here) == []
    late = Delivered(Change(899, 0, None, row(3)), 0, 61)  # older than the delete of the row
    here.restart()
    here.run([late])
    assert stored(here) == before


def test_the_stream_goes_on_with_the_new_ring(tmp_path: Path) -> None:
    here = lake(tmp_path)
    here.run(inserts(0, 20))
    resized(here, BucketChange("", (0,)), BucketChange("", (1,)))
    with pytest.raises(OvertakenError, match="bucket counts have changed"):
        here.run(inserts(20, 20))
    here.restart()
    here.run(inserts(20, 20))
    assert ids(here) == list(range(40))
    assert len(here.table.hudi.file_slices()) == 4
    assert errors(here) == []


def test_a_commit_beside_the_resize_is_not_lost(tmp_path: Path) -> None:
    here = lake(tmp_path)
    here.run(inserts(0, 20))
    done = resized(here, BucketChange("", (0,)), meanwhile=lambda: here.run(inserts(20, 20)))
    assert done.again == 1
    here.restart()
    assert ids(here) == list(range(40))
    assert here.table.standing(STREAM)[TOPIC][0] == 40


def test_partitions_have_rings_of_their_own(tmp_path: Path) -> None:
    here = lake(tmp_path, Shape(("id",), "region", "identity", "region"))
    here.run(inserts(0, 40))
    before, paths = stored(here), sorted({piece.partition_path for piece in opened(here).hudi.file_slices()})
    resized(here, BucketChange(paths[0], (1,)))
    bucketing = rings_of(opened(here).hudi, "t")
    assert [bucketing.count(path) for path in paths] == [3, *[2] * (len(paths) - 1)]
    here.restart()
    here.run(inserts(40, 40))
    assert ids(here) == list(range(80))
    assert set(before) < set(stored(here))
    assert errors(here) == []


def test_a_restore_takes_the_ring_back(tmp_path: Path) -> None:
    here = lake(tmp_path)
    here.run(inserts(0, 20))
    first = opened(here).hudi.timeline.completed()[-1].requested_time
    before = stored(here)
    done = resized(here, BucketChange("", (0,)))
    assert done.instant is not None
    storage = here.root.sub(here.rules.path)
    assert storage.stat(hashing_file("", done.instant, COMMIT_SUFFIX)) is not None
    table = HudiTable.open(storage)
    restore(table, first)
    assert rings_of(opened(here).hudi, "t").count("") == 2
    assert [info.path for info in storage.walk(HASHING_PATH)] == [hashing_file("", "00000000000000")]
    assert stored(here) == before
    here.restart()
    here.run(inserts(20, 20))
    assert ids(here) == list(range(40))


def test_sizes_propose_splits_and_merges(tmp_path: Path) -> None:
    here = lake(tmp_path)
    here.run(inserts(0, 40))
    table = opened(here)
    sizes = [piece.base_size + piece.log_size for piece in table.hudi.file_slices()]
    assert proposed(table.hudi, max(sizes)) == []
    assert proposed(table.hudi, min(sizes) // 3) == [BucketChange("", (0,)), BucketChange("", (1,))]
    assert proposed(table.hudi, 1 << 30) == []  # a partition keeps its first number of buckets
    resized(here, BucketChange("", (0,)))
    assert proposed(opened(here).hudi, 1 << 30) == [BucketChange("", (0, 1))]


@pytest.mark.parametrize(("buckets", "why"), [((5,), "0 to 1"), ((1, 1), "0 to 1"), ((), "0 to 1")])
def test_other_buckets_are_refused(tmp_path: Path, buckets: tuple[int, ...], why: str) -> None:
    here = lake(tmp_path)
    here.run(inserts(0, 4))
    with pytest.raises(ConfigError, match=why):
        resized(here, BucketChange("", buckets))
    assert not opened(here).hudi.timeline.pending()


def test_fsck_knows_the_rings(tmp_path: Path) -> None:
    here = lake(tmp_path)
    here.run(inserts(0, 20))
    storage, table = here.root.sub(here.rules.path), opened(here)
    ring = rings_of(table.hudi, "t").ring("")
    halves = ring.split(0, ("00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"))
    assert halves is not None
    orphan = ring.resized("20260101000000000", halves)
    storage.write(hashing_file("", orphan.instant), orphan.to_bytes())
    (found,) = errors(here)
    assert found.endswith("the timeline does not know: a Hudi writer may count it")
    assert rings_of(opened(here).hudi, "t").count("") == 2
    storage.write(hashing_file("", orphan.instant, COMMIT_SUFFIX), b"")
    (found,) = errors(here)
    assert "is no node of its partition's hash ring" in found
    storage.write(hashing_file("", orphan.instant), b"{}")
    assert any("hashing metadata cannot be read" in found for found in errors(here))
    storage.delete_tree(HASHING_PATH)
    (found,) = errors(here)
    assert found.startswith(".: a partition has no hashing metadata")
