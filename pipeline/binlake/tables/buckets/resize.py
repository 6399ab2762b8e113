"""Splits and merges single buckets of a table with consistent hashing while its stream goes on.

The steps are those of ``binlake.tables.buckets.rebucket``. The instant is a clustering until it completes, with the
plan of the new nodes in its requested file, as Hudi writes it. Before it completes, the new hash ring of each partition
is written; it counts from the moment at which the instant is completed. A crash before leaves a pending clustering,
which the table's next writer rolls back: the rings first, then the instant.
"""

from __future__ import annotations

from collections.abc import Sequence

from binlake.tables.buckets.bucket_sizes import BucketChange
from binlake.tables.buckets.rebucket import MapUnits, Mover, RebucketResult, carry_out, rebucket_stream
from binlake.tables.lake_table import LakeTable
from hudilake.clock import new_uuid
from hudilake.commit.commit import OvertakenError
from hudilake.errors import ConfigError
from hudilake.format.definition.consistent import ConsistentBuckets, HashingMetadata
from hudilake.format.definition.kind_support import TableOperation
from hudilake.services.compaction import CompactionConfig
from hudilake.services.rebucket import RebucketUnit, Resize, resize_plan, resize_units, rings_after


def rings_of(table: LakeTable) -> ConsistentBuckets:
    """The hash rings of a table. Raises UnsupportedError for a table without."""
    config = table.hudi.config
    config.kind.refuse(TableOperation.SPLIT, table.rules.path)
    assert isinstance(config.bucketing, ConsistentBuckets)
    return config.bucketing


def resize(
    table: LakeTable, wanted: Sequence[BucketChange], stream: str, config: CompactionConfig, map_units: MapUnits
) -> RebucketResult:
    """Split and merge buckets in one commit. Arguments and errors as ``rebucket``.

    ``wanted``: none of them share a bucket. Raises ConfigError for buckets that cannot be split or merged,
    UnsupportedError for a table without hash rings.
    """
    table.refresh(rebucket_stream(stream))
    bucketing = rings_of(table)
    changes = resizes(table, wanted)
    if not changes:
        return RebucketResult(None)
    hudi = table.hudi
    instant = hudi.begin_replace(resize_plan(hudi.file_slices(), changes))
    after = rings_after(changes, instant)

    def planned() -> list[RebucketUnit]:
        current = rings_of(table)
        if any(current.ring(one.ring.partition_path) != one.ring for one in changes):
            raise OvertakenError(
                "another writer has changed the hash ring since this resize began",
                do_next="run the resize again",
                instant=instant,
                table=table.rules.path,
            )
        return resize_units(hudi.file_slices(), changes, after)

    new = ConsistentBuckets(bucketing.number, {**bucketing.partitions, **after})
    return carry_out(Mover(table, new, instant, config, map_units, planned, tuple(after.values())), stream)


def resizes(table: LakeTable, wanted: Sequence[BucketChange]) -> list[Resize]:
    """The changes of the rings. Raises ConfigError for buckets that cannot be split or merged, UnsupportedError for a
    table without hash rings."""
    bucketing, taken, ring_changes = rings_of(table), set[tuple[str, int]](), list[Resize]()
    for one in wanted:
        ring = bucketing.ring(one.partition_path)
        places = {(one.partition_path, bucket) for bucket in one.buckets}
        if not places or max(one.buckets) >= len(ring.nodes) or len(places) < len(one.buckets) or places & taken:
            raise _impossible(table, one, f"the partition has the buckets 0 to {len(ring.nodes) - 1}, each once")
        taken |= places
        ring_changes.append(_resize(table, ring, one))
    return ring_changes


def _resize(table: LakeTable, ring: HashingMetadata, wanted: BucketChange) -> Resize:
    if len(wanted.buckets) == 1:
        halves = ring.split(wanted.buckets[0], (new_uuid(), new_uuid()))
        if halves is None:
            raise _impossible(table, wanted, "its range is a single hash value")
        return Resize(ring, wanted.buckets, halves)
    children = ring.merged(wanted.buckets, new_uuid())
    if children is None:
        raise _impossible(table, wanted, "buckets that are merged are neighbours, given in the ring's order")
    return Resize(ring, wanted.buckets, children)


def _impossible(table: LakeTable, wanted: BucketChange, why: str) -> ConfigError:
    numbers = ", ".join(map(str, wanted.buckets))
    return ConfigError(
        f"buckets {numbers} cannot be {'split' if len(wanted.buckets) == 1 else 'merged'}: {why}",
        do_next="see the buckets with binlake inspect, and name others",
        table=table.rules.path,
        partition=wanted.partition_path,
    )
