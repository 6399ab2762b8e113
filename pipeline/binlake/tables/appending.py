"""Rows that the driver adds to an append table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor

import pyarrow as pa

from binlake.rows.tasks.plan import Written
from binlake.tables.lake_table import LakeTable
from hudilake.commit.intent import GroupIntent, Intent
from hudilake.format.files.append import open_groups
from hudilake.write.append import AppendWriter

#: The driver's number among the writers of a commit. A table's rows are written by the driver or by tasks, never both.
_DRIVER = 0


def appended(table: LakeTable, writer: AppendWriter, by_path: Mapping[str, pa.Table], pool: Executor) -> list[Written]:
    """Write rows by partition path, the partitions side by side. Errors as ``AppendWriter.write``."""
    parts = writer.keyed(_DRIVER, by_path)
    written = pool.map(lambda part: writer.write(table.storage, part), parts)
    return [Written(table.rules.path, result, 0) for results in written for result in results]


def append_intent(table: LakeTable, paths: Iterable[str]) -> Intent:
    """The open file groups that the driver's rows of some partitions go to. A new file group is nobody else's."""
    known = open_groups(table.table.slices_to_fill(), table.rules.files)
    return Intent.of_groups(
        GroupIntent(path, known[path][_DRIVER].file_id, frozenset(), deletes=False) for path in paths if path in known
    )
