"""Writes the file groups of tagged events.

New keys must be in base files. So a file group that takes new rows gets a new base file, also in a table with log
files; all other file groups are written as the kind of the table says.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.tagging.events import KeyEvents
from binlake.rows.tagging.tag import FileGroupEvents, TaggedEvents
from binlake.rows.upsert.merge import group_write
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, WriteResult
from hudilake.storage.base import Storage
from hudilake.write.group_writer import BaseWriter, GroupWriter

_DELETES = pa.schema([pa.field(KEY, pa.string()), pa.field(ORDER_FIELD, pa.int64())])


@dataclass(frozen=True, slots=True)
class TaggedWriter:
    """Writes the file groups of one commit.

    Args:
        storage: the table's root.
        changes: writes file groups that take no new rows.
        bases: writes file groups that take new rows.
    """

    storage: Storage
    changes: GroupWriter
    bases: BaseWriter

    def write(self, tagged: TaggedEvents, pool: Executor) -> list[WriteResult]:
        """Write all file groups, side by side. Errors as ``GroupWriter.write``."""
        written = pool.map(lambda group: self._write(tagged.events, group), tagged.groups)
        return [result for results in written for result in results]

    def _write(self, events: KeyEvents, group: FileGroupEvents) -> list[WriteResult]:
        write = file_group_write(events, group)
        if group.takes_new:
            return self.bases.write(self.storage, write)
        return self.changes.write(self.storage, write)


def file_group_write(events: KeyEvents, group: FileGroupEvents) -> FileGroupWrite:
    """The events of a file group as upserts and deletes in key order."""
    write = FileGroupWrite(group.partition_path, group.file_id)
    if len(group.rows):
        write = group_write(group.partition_path, group.file_id, events.rows.take(pa.array(group.rows)))
    if not len(group.gone):
        return write
    moved = events.rows.select([KEY, "__order"]).take(pa.array(group.gone))
    moved = moved.rename_columns(_DELETES.names).cast(_DELETES)
    deletes = moved if write.deletes is None else pa.concat_tables([write.deletes.cast(_DELETES), moved])
    return replace(write, deletes=deletes.take(pc.sort_indices(deletes.column(KEY))))
