"""The hash rings of a table that Hudi Spark made, split by clustering and went on with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hudilake.format.definition.bucketing import buckets_of
from hudilake.format.definition.config import load_config
from hudilake.format.definition.consistent import COMMIT_SUFFIX, FIRST_INSTANT, ConsistentBuckets, hashing_file
from hudilake.format.definition.kind import TableKind
from hudilake.format.files.view import file_slices
from hudilake.format.timeline.timeline import Timeline
from hudilake.read.slice import read_file_slice
from hudilake.storage import open_storage
from hudilake.table.rings import Rings
from hudilake.table.table import HudiTable
from tests.hudilake.golden_kinds import extracted

SPLIT = "20261122085301500"


def test_hudis_rings_have_its_rows(tmp_path: Path) -> None:
    storage = open_storage(extracted("mor_consistent_bucket", tmp_path).as_uri())
    table = HudiTable.open(storage)
    config = replace(table.config, kind=TableKind(index="consistent_bucket"), bucket_count=2)
    bucketing = Rings(storage).taken_in(config, table.timeline).bucketing
    assert isinstance(bucketing, ConsistentBuckets)
    assert {path: (len(ring.nodes), ring.instant) for path, ring in bucketing.partitions.items()} == {
        "region=eu": (4, SPLIT),
        "region=us": (4, SPLIT),
    }
    for piece in file_slices(storage, table.timeline):
        keys = read_file_slice(table, piece).column("_hoodie_record_key")
        found = set(buckets_of(bucketing, keys, ("id",), piece.partition_path).tolist())
        assert found == {bucketing.bucket_of(piece.partition_path, piece.file_id)}


def test_a_ring_counts_once_its_resize_has_completed(tmp_path: Path) -> None:
    storage = open_storage(extracted("mor_consistent_bucket", tmp_path).as_uri())
    config, _ = load_config(storage)
    config = replace(config, kind=TableKind(index="consistent_bucket"), bucket_count=2)
    (completed,) = [i for i in Timeline.load(storage).completed() if i.requested_time == SPLIT]
    storage.delete(completed.path)
    rings = Rings(storage).taken_in(config, Timeline.load(storage)).rings
    assert rings.keys() == {"region=eu"}  # Hudi has confirmed this one
    storage.delete(hashing_file("region=eu", SPLIT, COMMIT_SUFFIX))
    assert Rings(storage).taken_in(config, Timeline.load(storage)).rings == {}
    other = replace(config, bucket_count=3)
    rings = Rings(storage).taken_in(other, Timeline.load(storage)).rings
    firsts = {path: (ring.num_buckets, ring.instant) for path, ring in rings.items()}
    assert firsts == dict.fromkeys(("region=eu", "region=us"), (2, FIRST_INSTANT))
