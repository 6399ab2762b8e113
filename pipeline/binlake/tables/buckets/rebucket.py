"""Moves a table to other bucket counts while its stream goes on: ``binlake rebucket``.

1. A replacecommit begins, ``.requested`` and ``.inflight``. Other writers go on: it takes in what they
   commit.
2. Without the lock, the rows of every unit (``hudilake.services.rebucket``) are written to new file groups under its
   instant. Units whose file groups got new files meanwhile are moved again, a few times.
3. Under the table's lock, which a commit of the stream waits for, the units that changed since are moved once more. So
   no commit is lost, and the lock is held for the last few changes only.
4. The replacecommit names the new files, the replaced file groups and the new counts. Readers see the old file groups
   before it and the new ones after it. A commit that was routed by the old counts is refused, and its batch runs again.
5. ``hoodie.properties`` gets the new counts.

A crash before step 4 leaves a pending instant, which the table's next writer rolls back; after it, properties that the
next writer settles. Tombstones of tables merged by their writer are copied in step 3: they are below the file ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from binlake.position.commit_record import CommitRecord
from binlake.rows.merging.tombstones import TOMBSTONES_PATH, all_rows, encode, folder
from binlake.rows.upsert.route import Counts
from binlake.tables.lake_table import LakeTable, Replacement
from hudilake.clock import monotonic_s
from hudilake.commit.hashing_files import confirm_rings, write_rings
from hudilake.errors import UnsupportedError
from hudilake.format.definition.bucketing import Bucketing, PartitionBuckets, buckets_of
from hudilake.format.definition.consistent import HashingMetadata
from hudilake.format.definition.hashing_config import hashing_config, hashing_config_path
from hudilake.format.definition.key_change import says_key
from hudilake.format.definition.kind_support import TableOperation
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import WriteContext, WriteResult
from hudilake.services.compaction import CompactionConfig
from hudilake.services.compaction.task import CompactionContext, CompletedInstants
from hudilake.services.rebucket import MoveContext, MovedUnit, RebucketUnit, begin_bucket, move, units

#: How often changed units are moved again without the lock.
_ROUNDS = 3

#: Runs a function over units, one task each, and returns the results.
MapUnits: TypeAlias = Callable[[Callable[[RebucketUnit], MovedUnit], Sequence[RebucketUnit]], list[MovedUnit]]


@dataclass(frozen=True)
class RebucketResult:
    """What was done.

    Args:
        instant: of the replacecommit; None if no count changes.
        replaced, made: numbers of file groups.
        rows: how many live rows were moved.
        bytes_written: of the new files.
        again: how many units were moved again because they changed meanwhile.
        locked_s: how long other writers waited, in seconds.
    """

    instant: str | None
    replaced: int = 0
    made: int = 0
    rows: int = 0
    bytes_written: int = 0
    again: int = 0
    locked_s: float = 0.0


def rebucket_stream(name: str) -> str:
    """The stream name in the commits that move rows. No stream of the settings can have this name."""
    return f"{name}.rebucket"


def plan_rebucket(table: LakeTable, wanted: Bucketing) -> list[RebucketUnit]:
    """What would be moved. Raises UnsupportedError for a table without computed buckets, CorruptDataError,
    StorageError."""
    refuse_unmovable(table)
    return units(table.hudi.file_slices(), table.hudi.config.bucketing, wanted)


def refuse_unmovable(table: LakeTable) -> None:
    """Raise UnsupportedError for a table whose rows have no bucket of their own."""
    config = table.hudi.config
    config.kind.refuse(TableOperation.REBUCKET, table.rules.path)
    if not says_key(config):
        raise UnsupportedError(
            "the table is between two record keys, so its rows have no bucket",
            do_next="start the stream, which settles the key, and try again",
            table=table.rules.path,
        )


def rebucket(
    table: LakeTable, wanted: Bucketing, stream: str, config: CompactionConfig, map_units: MapUnits
) -> RebucketResult:
    """Move a table to other bucket counts.

    Args:
        table: open for writing.
        wanted: the new buckets.
        stream: of the settings.
        config: how base files are written, and how long deletes are kept.
        map_units: where the work runs.

    Raises UnsupportedError for a table without computed buckets, ForeignActionError while another replacecommit or
    clustering is pending, LockHeldError, LostOwnershipError, CommitUnknownError, CorruptDataError, StorageError. The
    table is unchanged then, except after a CommitUnknownError.
    """
    refuse_unmovable(table)
    table.refresh(rebucket_stream(stream))
    if table.hudi.config.bucketing == wanted:
        return RebucketResult(None)
    instant = table.hudi.begin_replace()

    def planned() -> list[RebucketUnit]:
        return units(table.hudi.file_slices(), table.hudi.config.bucketing, wanted)

    return carry_out(Mover(table, wanted, instant, config, map_units, planned), stream)


def carry_out(mover: Mover, stream: str) -> RebucketResult:
    """Steps 2 to 5. Errors as ``rebucket``."""
    table, instant = mover.table, mover.instant
    with table.undone_on_error(instant):
        for _ in range(_ROUNDS):
            table.hudi.refresh()
            if not mover.move_changed():
                break
        with table.hudi.exclusively():
            began = monotonic_s()
            table.refresh(rebucket_stream(stream))
            table.hudi.rebase(instant)
            mover.move_changed()
            mover.copy_tombstones()
            mover.commit(stream)
            table.hudi.state.settle_buckets()
    return mover.done(monotonic_s() - began)


@dataclass
class Mover:
    """The move of one table under one instant.

    Args:
        table: open for writing.
        wanted: its buckets from the instant on.
        instant: of the pending replacecommit.
        config: how base files are written, and how long deletes are kept.
        map_units: where the work runs.
        planned: what is to be moved as of the table's last refresh.
        rings: the hash rings of the partitions that are resized.
        moved: partition path and number of a unit -> its move.
        begun: the files of new buckets that have deleted rows alone.
    """

    table: LakeTable
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
        for done in self.map_units(partial(move, self.table.storage, self._context()), stale) if stale else ():
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
                self.table.storage.delete(result.path)

    def _context(self) -> MoveContext:
        hudi = self.table.hudi
        write = self._write_context()
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

    def _write_context(self) -> WriteContext:
        return self.table.context(self.instant, self.table.hudi.schema)

    def copy_tombstones(self) -> None:
        """Copy the orders of deleted rows to the new file groups. A row of them counts by the instant that deleted, so
        copies say what the originals say. A new bucket that has deleted rows alone begins with an empty base file."""
        context, rows_of = self._context(), dict[tuple[str, int], list[pa.Table]]()
        for path, file_id in self._sources():
            rows = all_rows(self.table.storage, file_id)
            if rows is None:
                continue
            row_buckets = buckets_of(self.wanted, rows.column(RECORD_KEY_FIELD), context.key_fields, path)
            for bucket in np.unique(row_buckets).tolist():
                rows_of.setdefault((path, bucket), []).append(rows.filter(pa.array(row_buckets == bucket)))
        made = {(result.partition_path, result.file_id) for result in self._results()}
        for (path, bucket), parts in rows_of.items():
            file_id = context.file_id(path, bucket)
            data = encode(pa.concat_tables(parts, promote_options="permissive"))
            self.table.storage.write(f"{folder(file_id)}/{self.instant}.arrow", data)
            if (path, file_id) not in made:
                self.begun.append(begin_bucket(self.table.storage, context, path, bucket))

    def _sources(self) -> list[tuple[str, str]]:
        """Partition path and id of each file group that is moved, those that have nothing but deleted rows too: a
        copy-on-write table of an earlier version wrote no file for them."""
        hudi, units_moved = self.table.hudi, [done.unit for done in self.moved.values()]
        file_groups = [(unit.partition_path, source.file_id) for unit in units_moved for source in unit.sources]
        if hudi.config.kind.hashes:
            return file_groups
        slices = hudi.file_slices()
        with_files, former = {piece.file_id for piece in slices}, hudi.config.bucketing
        folders = [name for name in self.table.storage.list_dirs(TOMBSTONES_PATH) if name not in with_files]
        for path in {"", *(piece.partition_path for piece in slices)} if folders else ():
            if former.count(path) != self.wanted.count(path):
                ids = {self.table.names.of(path, bucket) for bucket in range(former.count(path))}
                file_groups += [(path, name) for name in folders if name in ids]
        return file_groups

    def _results(self) -> list[WriteResult]:
        return [*(result for done in self.moved.values() for result in done.results), *self.begun]

    def commit(self, stream: str) -> None:
        """Publish the move."""
        groups: dict[str, list[str]] = {}
        for done in self.moved.values():
            ids = [source.file_id for source in done.unit.sources]
            groups.setdefault(done.unit.partition_path, []).extend(ids)
        table = self.table
        if any(isinstance(one, PartitionBuckets) for one in (self.wanted, table.hudi.config.bucketing)):
            content = hashing_config(self.wanted, self.instant)
            table.storage.write(hashing_config_path(self.instant), content)
        record = CommitRecord(rebucket_stream(stream), 0, Counts(), table.source, table.origin)
        replacement = Replacement({path: tuple(sorted(ids)) for path, ids in groups.items()}, self.wanted)
        write_rings(table.storage, self.rings)
        table.commit(self._write_context(), self._results(), record, replacement=replacement)
        confirm_rings(table.storage, self.rings)

    def done(self, locked_s: float) -> RebucketResult:
        """What was done."""
        results = self._results()
        return RebucketResult(
            self.instant,
            replaced=sum(len(one.unit.sources) for one in self.moved.values()),
            made=len({(result.partition_path, result.file_id) for result in results}),
            rows=sum(result.num_upserts for result in results),
            bytes_written=sum(result.size_bytes for result in results),
            again=self.again,
            locked_s=locked_s,
        )
