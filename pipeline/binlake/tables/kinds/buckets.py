"""Tables with buckets: the file group of a row is computed from its key, and its parcels are merged there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, wait

import pyarrow as pa

from binlake.rows.merging.engines.heights import FactHeights
from binlake.rows.merging.mergers import CopyMerger
from binlake.rows.merging.state_cache import ROWS, keep_written
from binlake.rows.merging.states import Merger
from binlake.rows.merging.write import write_merged
from binlake.rows.tasks.plan import WrittenFile
from binlake.rows.upsert.merge import Place
from binlake.tables.kinds.rows import TableRows, Wrote
from hudilake.commit.intent import GroupIntent, Intent
from hudilake.format.definition.bucketing import Bucketing
from hudilake.format.files.file_group_write import WriteContext, with_markers


class BucketRows(TableRows):
    """The rows of a table with buckets, fixed ones or those of a hash ring."""

    def intent(self, places: Sequence[Place], columns: pa.Schema) -> Intent:
        """The buckets of the rows."""
        fed = self._fed_columns(columns)
        return Intent.of_groups(
            GroupIntent(place[0], self.names.of(*place), fed, inserts=fed is None, deletes=fed is None)
            for place in places
        )

    def routed_by(self, bucketing: Bucketing) -> bool:
        """They are if the buckets are those of now."""
        return bucketing == self.table.config.bucketing

    def write(
        self,
        groups: Mapping[Place, pa.Table],
        context: WriteContext,
        pool: Executor,
        heights: FactHeights,
    ) -> Wrote:
        """Merge the rows of every file group into it."""
        filled = [(place, rows) for place, rows in groups.items() if len(rows)]
        if not self.table.config.kind.copies:
            named = [(place[0], self.names.of(*place)) for place, _ in filled]
            context = with_markers(self.storage, context, named)
        writer, merger = self.group_writer(context), self.merger(context, heights)

        def write(place: Place, rows: pa.Table) -> list[WrittenFile]:
            name = self.names.of(*place)
            merged = merger.merge(place, name, rows)
            results = write_merged(self.storage, writer, merged)
            keep_written(ROWS, (self._owner, name), merged.write, results)
            return WrittenFile.of(self.rules.path, GroupIntent(place[0], name), merged, results)

        if len(filled) == 1:  # no other file group is written meanwhile
            return Wrote(write(*filled[0]))
        written = [pool.submit(write, place, rows) for place, rows in filled]
        wait(written)  # if one fails, the instant is rolled back: none may write a file after that
        return Wrote([one for some in written for one in some.result()])

    def _fed_columns(self, columns: pa.Schema) -> frozenset[str] | None:
        """Under ``conflicts: column`` the columns of the groups that a batch feeds, as if every row lived: the second
        check knows what was written. None for whole rows, also of a table whose commits rewrite base files."""
        merging, config = self.merging, self.table.config
        if not merging.groups or self.rules.conflicts != "column" or config.kind.copies:
            return None
        shared = {*config.record_key_fields, *config.partition_fields}
        values = tuple(name for name in columns.names if name not in shared)
        groups = {group.order_field: merging.columns_of(group, values) for group in merging.groups}
        return frozenset(name for order, names in groups.items() if names for name in (order, *names))

    def _plain_merger(self) -> Merger:
        """Base files forget deletes, so a merger of a copy-on-write table must know them."""
        if self.table.config.kind.copies:
            return CopyMerger(self.storage, self.table.timeline)
        return super()._plain_merger()

    @property
    def _base_sizes(self) -> None:
        """A base file is as large as its bucket."""
        return

    @property
    def _bases_keep_deletes(self) -> bool:
        """Tables merged by their writer keep tombstones instead."""
        return not self.merging.by_writer
