"""Moves a table to other buckets while others write to it: ``Table.rebucket``, ``binlake rebucket``.

1. A replacecommit begins, ``.requested`` and ``.inflight``. Other writers go on: it takes in what they
   commit. A resize of hash rings is a clustering until it completes, with the plan of the new nodes in its requested
   file, as Hudi writes it.
2. Without the lock, the rows of every unit are written to new file groups under its instant. Units whose file groups
   got new files meanwhile are moved again, a few times.
3. Under the table's lock, which commits wait for, the units that changed since are moved once more. So no commit is
   lost, and the lock is held for the last few changes only. What the writer keeps of deleted rows beside the files is
   carried over here.
4. The new hash rings are written, if there are any: they count from the moment at which the instant is completed. The
   replacecommit names the new files, the replaced file groups and the new counts. Readers see the old file groups
   before it and the new ones after it. A commit that was routed by the old counts is refused, and is made again.
5. ``hoodie.properties`` gets the new counts.

A crash before step 4 leaves a pending instant, which the table's next writer rolls back, hash rings first; after it,
properties that the next writer settles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeAlias

from hudilake.clock import monotonic_s
from hudilake.commit.commit import OvertakenError
from hudilake.commit.hashing_files import confirm_rings, write_rings
from hudilake.errors import UnsupportedError
from hudilake.format.definition.bucketing import Bucketing, PartitionBuckets
from hudilake.format.definition.change_logs import refuse_change_log
from hudilake.format.definition.consistent import ConsistentBuckets, HashingMetadata
from hudilake.format.definition.hashing_config import hashing_config, hashing_config_path
from hudilake.format.definition.key_change import says_key
from hudilake.format.definition.kind_support import TableOperation
from hudilake.format.files.file_group_write import WriteContext, WriteResult
from hudilake.services.compaction import CompactionConfig
from hudilake.services.compaction.task import CompactionContext, CompletedInstants
from hudilake.services.rebucket.move import MoveContext, MovedUnit, move
from hudilake.services.rebucket.units import (
    BucketChange,
    RebucketUnit,
    resize_plan,
    resize_units,
    resizes,
    rings_after,
    units,
)
from hudilake.table.table import HudiTable

#: How often changed units are moved again without the lock.
_ROUNDS = 3

#: Runs a function over units, one task each, and returns the results.
MapUnits: TypeAlias = Callable[[Callable[[RebucketUnit], MovedUnit], Sequence[RebucketUnit]], list[MovedUnit]]


@dataclass(frozen=True)
class RebucketResult:
    """What a move to other buckets has done.

    Args:
        instant: of the replacecommit; None if no count changes.
        replaced, made: numbers of file groups.
        rows: how many live rows were moved.
        bytes_written: of the new files.
        again: how many units were moved again because they changed meanwhile.
        locked_s: how long other writers waited, in seconds.

    Example:
        >>> done = orders.rebucket(3)
        >>> done.instant == orders.history()[0].requested, done.rows, orders.rebucket(3).instant
        (True, 3, None)
    """

    instant: str | None
    replaced: int = 0
    made: int = 0
    rows: int = 0
    bytes_written: int = 0
    again: int = 0
    locked_s: float = 0.0


class RebucketWriter(Protocol):
    """A writer of an open table, for what its commits record and keep beside the files of the table format."""

    @property
    def hudi(self) -> HudiTable:
        """The table."""
        ...

    @property
    def name(self) -> str:
        """Of the table, for errors."""
        ...

    def refresh(self) -> None:
        """Take in what others have committed. Raises LostOwnershipError if this writer may not go on."""
        ...

    def context(self, instant: str) -> WriteContext:
        """How files of an instant are written."""
        ...

    def undone_on_error(self, instant: str) -> AbstractContextManager[None]:
        """Roll an instant back before an error goes on, unless its outcome is unknown or another writer owns it."""
        ...

    def carry_deletes(self, mover: Mover) -> list[WriteResult]:
        """Carry what is kept of deleted rows beside the files over to the new file groups; returns the files of new
        buckets that have nothing else. Called under the lock, once all units are moved."""
        ...

    def commit(
        self,
        context: WriteContext,
        results: Sequence[WriteResult],
        replaced: Mapping[str, tuple[str, ...]],
        bucketing: Bucketing,
    ) -> None:
        """Complete the replacecommit.

        Args:
            context: of its instant.
            results: the new files.
            replaced: the ids of the replaced file groups by partition path.
            bucketing: of the table from now on.
        """
        ...


def rings_of(table: HudiTable, name: str) -> ConsistentBuckets:
    """The hash rings of a table. Raises UnsupportedError for a table without. ``name``: of the table, for the error."""
    table.config.kind.refuse(TableOperation.SPLIT, name)
    assert isinstance(table.config.bucketing, ConsistentBuckets)
    return table.config.bucketing


def plan_rebucket(table: HudiTable, wanted: Bucketing, name: str) -> list[RebucketUnit]:
    """What would be moved. Raises UnsupportedError for a table without computed buckets, CorruptDataError,
    StorageError. ``name``: of the table, for the error."""
    refuse_unmovable(table, name)
    return units(table.file_slices(), table.config.bucketing, wanted)


def refuse_unmovable(table: HudiTable, name: str) -> None:
    """Raise UnsupportedError for a table whose rows have no bucket of their own. ``name``: of the table."""
    config = table.config
    config.kind.refuse(TableOperation.REBUCKET, name)
    why = "Hudi's CDC query would take the moved rows for deleted and inserted ones"
    refuse_change_log(config.extra, name, "rebucket", why)
    if not says_key(config):
        raise UnsupportedError(
            "the table is between two record keys, so its rows have no bucket",
            do_next="start the stream, which settles the key, and try again",
            table=name,
        )


def rebucket(
    writer: RebucketWriter, wanted: Bucketing, config: CompactionConfig, map_units: MapUnits
) -> RebucketResult:
    """Move a table to other bucket counts.

    Args:
        writer: of the table.
        wanted: the new buckets.
        config: how base files are written, and how long deletes are kept.
        map_units: where the work runs.

    Raises UnsupportedError for a table without computed buckets, ForeignActionError while another replacecommit or
    clustering is pending, LockHeldError, LostOwnershipError, CommitUnknownError, CorruptDataError, StorageError. The
    table is unchanged then, except after a CommitUnknownError.
    """
    hudi = writer.hudi
    refuse_unmovable(hudi, writer.name)
    writer.refresh()
    if hudi.config.bucketing == wanted:
        return RebucketResult(None)
    instant = hudi.begin_replace()

    def planned() -> list[RebucketUnit]:
        return units(hudi.file_slices(), hudi.config.bucketing, wanted)

    return _carry_out(Mover(writer, wanted, instant, config, map_units, planned))


def resize(
    writer: RebucketWriter, wanted: Sequence[BucketChange], config: CompactionConfig, map_units: MapUnits
) -> RebucketResult:
    """Split and merge buckets of hash rings in one commit. Arguments and errors as ``rebucket``.

    ``wanted``: none of them share a bucket. Raises ConfigError for buckets that cannot be split or merged,
    UnsupportedError for a table without hash rings.
    """
    writer.refresh()
    hudi = writer.hudi
    bucketing = rings_of(hudi, writer.name)
    changes = resizes(bucketing, wanted, writer.name)
    if not changes:
        return RebucketResult(None)
    instant = hudi.begin_replace(resize_plan(hudi.file_slices(), changes))
    after = rings_after(changes, instant)

    def planned() -> list[RebucketUnit]:
        current = rings_of(hudi, writer.name)
        if any(current.ring(one.ring.partition_path) != one.ring for one in changes):
            raise OvertakenError(
                "another writer has changed the hash ring since this resize began",
                do_next="run the resize again",
                instant=instant,
                table=writer.name,
            )
        return resize_units(hudi.file_slices(), changes, after)

    new = ConsistentBuckets(bucketing.number, {**bucketing.partitions, **after})
    return _carry_out(Mover(writer, new, instant, config, map_units, planned, tuple(after.values())))


def _carry_out(mover: Mover) -> RebucketResult:
    """Steps 2 to 5. Errors as ``rebucket``."""
    writer, instant = mover.writer, mover.instant
    hudi = writer.hudi
    with writer.undone_on_error(instant):
        for _ in range(_ROUNDS):
            hudi.refresh()
            if not mover.move_changed():
                break
        with hudi.exclusively():
            began = monotonic_s()
            writer.refresh()
            hudi.rebase(instant)
            mover.move_changed()
            mover.begun += writer.carry_deletes(mover)
            mover.commit()
            hudi.state.settle_buckets()
    return mover.done(monotonic_s() - began)


@dataclass
class Mover:
    """The move of one table under one instant.

    Args:
        writer: of the table.
        wanted: its buckets from the instant on.
        instant: of the pending replacecommit.
        config: how base files are written, and how long deletes are kept.
        map_units: where the work runs.
        planned: what is to be moved as of the table's last refresh.
        rings: the hash rings of the partitions that are resized.
        moved: partition path and number of a unit -> its move.
        begun: the files of new buckets that have deleted rows alone.
    """

    writer: RebucketWriter
    wanted: Bucketing
    instant: str
    config: CompactionConfig
    map_units: MapUnits
    planned: Callable[[], list[RebucketUnit]]
    rings: tuple[HashingMetadata, ...] = ()
    moved: dict[tuple[str, int], MovedUnit] = field(default_factory=dict)
    begun: list[WriteResult] = field(default_factory=list)
    again: int = 0

    def move_changed(self) -> int:
        """Move the units that are new or have other files than when they were moved. Returns their number."""
        planned = self.planned()
        stale = [unit for unit in planned if not self._is_moved(unit)]
        self.again += sum(unit.place in self.moved for unit in stale)
        for done in self.map_units(partial(move, self.writer.hudi.storage, self.context()), stale) if stale else ():
            former = self.moved.get(done.unit.place)
            self._delete(former.results if former is not None else (), done.results)
            self.moved[done.unit.place] = done
        for place in self.moved.keys() - {unit.place for unit in planned}:  # a restore took its file groups back
            self._delete(self.moved.pop(place).results, ())
        return len(stale)

    def _is_moved(self, unit: RebucketUnit) -> bool:
        known = self.moved.get(unit.place)
        return known is not None and known.unit.sources == unit.sources

    def _delete(self, former: Iterable[WriteResult], present: Iterable[WriteResult]) -> None:
        """Delete files of an earlier move that the later one did not write again: the commit would publish them."""
        kept = {result.path for result in present}
        for result in former:
            if result.path not in kept:
                self.writer.hudi.storage.delete(result.path)

    def context(self) -> MoveContext:
        """What all units share."""
        hudi = self.writer.hudi
        write = self.writer.context(self.instant)
        merging = CompactionContext(
            instant=self.instant,
            avro_schema_json=write.avro_schema_json,
            arrow_schema=write.arrow_schema,
            ordering_field=hudi.config.ordering_field,
            completed=CompletedInstants.of(hudi.timeline),
            config=self.config,
            indexed_columns=write.indexed_columns,
            restated_hours=hudi.config.restated_hours(self.config.tombstone_retention_hours),
        )
        return MoveContext(merging, self.wanted, hudi.config.hash_fields, hudi.config.name)

    def results(self) -> list[WriteResult]:
        """The new files."""
        return [*(result for done in self.moved.values() for result in done.results), *self.begun]

    def commit(self) -> None:
        """Publish the move."""
        groups: dict[str, list[str]] = {}
        for done in self.moved.values():
            ids = [source.file_id for source in done.unit.sources]
            groups.setdefault(done.unit.partition_path, []).extend(ids)
        hudi = self.writer.hudi
        if any(isinstance(one, PartitionBuckets) for one in (self.wanted, hudi.config.bucketing)):
            content = hashing_config(self.wanted, self.instant)
            hudi.storage.write(hashing_config_path(self.instant), content)
        replaced = {path: tuple(sorted(ids)) for path, ids in groups.items()}
        write_rings(hudi.storage, self.rings)
        self.writer.commit(self.writer.context(self.instant), self.results(), replaced, self.wanted)
        confirm_rings(hudi.storage, self.rings)

    def done(self, locked_s: float) -> RebucketResult:
        """What was done."""
        results = self.results()
        return RebucketResult(
            self.instant,
            replaced=sum(len(one.unit.sources) for one in self.moved.values()),
            made=len({(result.partition_path, result.file_id) for result in results}),
            rows=sum(result.num_upserts for result in results),
            bytes_written=sum(result.size_bytes for result in results),
            again=self.again,
            locked_s=locked_s,
        )
