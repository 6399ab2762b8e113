"""Append tables: rows have no key, go to the end of open file groups, and never meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace

import pyarrow as pa

from binlake.rows.merging.engines.heights import FactHeights
from binlake.rows.tasks.plan import TableWriter, WrittenFile
from binlake.rows.upsert.merge import Place
from binlake.tables.definition import base_file_form
from binlake.tables.kinds.rows import TableRows, Wrote
from hudilake.commit.intent import GroupIntent, Intent
from hudilake.format.files.append import open_groups
from hudilake.format.files.file_group_write import WriteContext
from hudilake.format.files.view import FileSlice
from hudilake.write.append import AppendWriter

#: The driver's number among the writers of a commit. A table's rows are written by the driver or by tasks, never both.
_DRIVER = 0


class AppendedRows(TableRows):
    """The rows of an append table."""

    def intent(self, places: Sequence[Place], columns: pa.Schema) -> Intent:
        """The open file groups that the driver's rows go to. A new file group is nobody else's."""
        known = open_groups(self.table.state.slices_to_fill(), self.rules.files)
        return Intent.of_groups(
            GroupIntent(path, known[path][_DRIVER].file_id, frozenset(), deletes=False)
            for path, _ in places
            if path in known
        )

    def write(
        self,
        groups: Mapping[Place, pa.Table],
        context: WriteContext,
        pool: Executor,
        heights: FactHeights,
    ) -> Wrote:
        """Add rows, the partitions side by side."""
        writer = self._writer(context)
        parts = writer.keyed(_DRIVER, {path: rows for (path, _), rows in groups.items()})
        written = pool.map(lambda part: writer.write(self.storage, part), parts)
        return Wrote([WrittenFile(self.rules.path, result, 0) for results in written for result in results])

    def written_by_tasks(self, *, shuffled: bool) -> bool:
        """They can: any file group takes any row."""
        return True

    def changeable(self) -> list[FileSlice]:
        """None: rows are never changed."""
        return []

    def task_writer(self, context: WriteContext, heights: FactHeights) -> TableWriter:
        """What tasks need to add rows."""
        return replace(super().task_writer(context, heights), append=self._writer(context))

    def _writer(self, context: WriteContext) -> AppendWriter:
        """What adds rows to the file groups of now. Raises CorruptDataError, StorageError."""
        sizes = self.rules.files
        groups = open_groups(self.table.state.slices_to_fill(), sizes)
        return AppendWriter(context, sizes, groups, self.table.config.kind.copies, base_file_form(self.rules))
