"""Other buckets for a lake table while its stream goes on: ``binlake rebucket``. The steps are those of
``hudilake.services.rebucket``.

The commit records the stream. Tombstones of tables merged by their writer are copied: they are below the file ids. A
batch that was routed by the old counts runs again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from binlake.position.commit_record import CommitRecord
from binlake.rows.merging.tombstones import all_rows, encode, folder
from binlake.rows.upsert.route import Counts
from binlake.tables.lake_table import LakeTable, Replacement
from hudilake.format.definition.bucketing import Bucketing, buckets_of
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import WriteContext, WriteResult
from hudilake.format.files.names import TOMBSTONES_PATH
from hudilake.services.compaction import CompactionConfig
from hudilake.services.rebucket import steps
from hudilake.services.rebucket.move import begin_bucket
from hudilake.services.rebucket.steps import MapUnits, Mover, RebucketResult
from hudilake.services.rebucket.units import BucketChange
from hudilake.table.table import HudiTable


def rebucket_stream(name: str) -> str:
    """The stream name in the commits that move rows. No stream of the settings can have this name."""
    return f"{name}.rebucket"


def rebucket(
    table: LakeTable, wanted: Bucketing, stream: str, config: CompactionConfig, map_units: MapUnits
) -> RebucketResult:
    """Move a table to other bucket counts. Arguments and errors as ``steps.rebucket``.

    ``table``: open for writing. ``stream``: of the settings.
    """
    return steps.rebucket(LakeRebucket(table, rebucket_stream(stream)), wanted, config, map_units)


def resize(
    table: LakeTable, wanted: Sequence[BucketChange], stream: str, config: CompactionConfig, map_units: MapUnits
) -> RebucketResult:
    """Split and merge buckets of hash rings. Arguments and errors as ``steps.resize``.

    ``table``: open for writing. ``stream``: of the settings.
    """
    return steps.resize(LakeRebucket(table, rebucket_stream(stream)), wanted, config, map_units)


@dataclass(frozen=True, slots=True)
class LakeRebucket:
    """A lake table as the steps of a move ask it (``RebucketWriter``).

    Args:
        table: open for writing.
        stream: the name in the commits.
    """

    table: LakeTable
    stream: str

    @property
    def hudi(self) -> HudiTable:
        """Its Hudi table."""
        return self.table.hudi

    @property
    def name(self) -> str:
        """Its path below the lake's root."""
        return self.table.rules.path

    def refresh(self) -> None:
        """Take in what others have committed. Errors as ``LakeTable.refresh``."""
        self.table.refresh(self.stream)

    def context(self, instant: str) -> WriteContext:
        """How files of an instant are written."""
        return self.table.context(instant, self.hudi.schema)

    def undone_on_error(self, instant: str) -> AbstractContextManager[None]:
        """Roll an instant back before an error goes on."""
        return self.table.undone_on_error(instant)

    def commit(
        self,
        context: WriteContext,
        results: Sequence[WriteResult],
        replaced: Mapping[str, tuple[str, ...]],
        bucketing: Bucketing,
    ) -> None:
        """Complete the replacecommit with the record of a commit that moves no position."""
        record = CommitRecord(self.stream, 0, Counts(), self.table.source, self.table.origin)
        self.table.commit(context, results, record, replacement=Replacement(replaced, bucketing))

    def carry_deletes(self, mover: Mover) -> list[WriteResult]:
        """Copy the orders of deleted rows to the new file groups. A row of them counts by the instant that deleted, so
        copies say what the originals say. A new bucket that has deleted rows alone begins with an empty base file."""
        context, rows_of, begun = mover.context(), dict[tuple[str, int], list[pa.Table]](), list[WriteResult]()
        for path, file_id in self._sources(mover):
            rows = all_rows(self.table.storage, file_id)
            if rows is None:
                continue
            row_buckets = buckets_of(mover.wanted, rows.column(RECORD_KEY_FIELD), context.key_fields, path)
            for bucket in np.unique(row_buckets).tolist():
                rows_of.setdefault((path, bucket), []).append(rows.filter(pa.array(row_buckets == bucket)))
        made = {(result.partition_path, result.file_id) for result in mover.results()}
        for (path, bucket), parts in rows_of.items():
            file_id = context.file_id(path, bucket)
            data = encode(pa.concat_tables(parts, promote_options="permissive"))
            self.table.storage.write(f"{folder(file_id)}/{mover.instant}.arrow", data)
            if (path, file_id) not in made:
                begun.append(begin_bucket(self.table.storage, context, path, bucket))
        return begun

    def _sources(self, mover: Mover) -> list[tuple[str, str]]:
        """Partition path and id of each file group that is moved, those that have nothing but deleted rows too: a
        copy-on-write table of an earlier version wrote no file for them."""
        hudi, units_moved = self.table.hudi, [done.unit for done in mover.moved.values()]
        file_groups = [(unit.partition_path, source.file_id) for unit in units_moved for source in unit.sources]
        if hudi.config.kind.hashes:
            return file_groups
        slices = hudi.file_slices()
        with_files, former = {piece.file_id for piece in slices}, hudi.config.bucketing
        folders = [name for name in self.table.storage.list_dirs(TOMBSTONES_PATH) if name not in with_files]
        for path in {"", *(piece.partition_path for piece in slices)} if folders else ():
            if former.count(path) != mover.wanted.count(path):
                ids = {self.table.names.of(path, bucket) for bucket in range(former.count(path))}
                file_groups += [(path, name) for name in folders if name in ids]
        return file_groups
