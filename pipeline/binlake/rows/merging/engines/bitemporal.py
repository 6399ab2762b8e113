"""The engine ``bitemporal``: versions as ``scd2`` has them, and what the lake held of each before it knew better.

A row is a version as the lake knew it from one commit on. A commit that changes a version's end or values, or takes it
back, closes its row and writes the version anew. So the rows that a commit knew are the ones that were open after it:
they are the ``scd2`` table as of that commit. A closed row never changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.columns import Flags
from binlake.rows.merging.engines.row_moments import GroupEvents, versions_of
from binlake.rows.merging.engines.versions import NewVersions
from binlake.rows.merging.states import GroupStates, MergeResult
from binlake.rows.upsert.merge import Place
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.rows.upsert.version_columns import KNOWN_AT, KNOWN_FIELDS, KNOWN_FROM, KNOWN_TO, key_of_known, times_of
from hudilake.clock import parse_instant
from hudilake.format.definition.merging import WRITER_ORDER, Merging
from hudilake.format.digest.rows import row_digests
from hudilake.format.files.file_group_write import FileGroupWrite

#: What does not tell two states of a version apart.
_ABOUT = frozenset({KEY, ORDER_FIELD, *(field.name for field in KNOWN_FIELDS)})


@dataclass(frozen=True, slots=True)
class Bitemporal:
    """The merger of a table.

    Args:
        merging: of the table.
        schema: the table's columns without meta fields.
        states: of its rows.
        instant: of the commit.
    """

    merging: Merging
    schema: pa.Schema
    states: GroupStates
    instant: str

    def merge(self, place: Place, file_id: str, rows: pa.Table) -> MergeResult:
        """Returns the write of the versions that are known now, and of the rows that are known so no longer. Errors as
        ``Merger.merge``."""
        batch = GroupEvents.of(rows, self.states, file_id, self.schema)
        stored = batch.stored.filter(batch.stored.column(KNOWN_TO).is_null()).combine_chunks()
        made = NewVersions.of(replace(batch, stored=stored), self.states, file_id, self.schema, self.merging)
        now, before = versions_of(made.rows), versions_of(stored)
        fresh = pa.array(~_same(made.rows, stored, pc.index_in(now, value_set=before)))
        keys = now.filter(fresh)
        mended = pc.is_in(before, value_set=keys).to_numpy(zero_copy_only=False)
        known = self._known(made.rows.filter(fresh), keys)
        upserts = pa.concat_tables([known, self._closed(stored.filter(pa.array(made.overruled | mended)))])
        write = FileGroupWrite(place[0], file_id, upserts.sort_by(KEY) if len(upserts) else None, None)
        return MergeResult(write, batch.superseded, made.tombstones if len(made.tombstones) else None)

    def _known(self, rows: pa.Table, keys: pa.Array) -> pa.Table:
        """Versions as this commit knows them. ``keys``: as of ``versions_of``."""
        known_at = int(self.instant)
        own = {
            KEY: key_of_known(keys, known_at),
            KNOWN_AT: pa.array(np.full(len(rows), known_at, dtype=np.int64)),
            KNOWN_FROM: self._times(len(rows)),
            KNOWN_TO: pa.nulls(len(rows), KNOWN_FIELDS[-1].type),
        }
        return self._table({name: own.get(name, rows.column(name)) for name in rows.column_names})

    def _closed(self, rows: pa.Table) -> pa.Table:
        """Stored rows that are known so until this commit."""
        orders = pa.array(np.full(len(rows), WRITER_ORDER, dtype=np.int64))
        columns = {name: rows.column(name) for name in rows.column_names}
        return self._table(columns | {KNOWN_TO: self._times(len(rows)), ORDER_FIELD: orders})

    def _times(self, count: int) -> pa.Array:
        """The commit's time, ``count`` times."""
        return times_of(np.full(count, parse_instant(self.instant), dtype=np.int64))

    def _table(self, columns: dict[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
        return pa.table(
            {KEY: columns[KEY]} | {field.name: columns[field.name].cast(field.type) for field in self.schema}
        )


def _same(rows: pa.Table, stored: pa.Table, at: pa.Array) -> Flags:
    """Which of n versions are stored as they are. ``at``: their numbers in ``stored``, null for none."""
    stored_at = np.flatnonzero(at.is_valid().to_numpy(zero_copy_only=False))
    names = [name for name in rows.column_names if name not in _ABOUT]
    now, before = rows.select(names).take(pa.array(stored_at)), stored.select(names).take(at.take(pa.array(stored_at)))
    ours, theirs = (row_digests(dict(zip(names, some.columns, strict=True)), len(stored_at)) for some in (now, before))
    same = np.zeros(len(rows), dtype=np.bool_)
    same[stored_at] = (ours.low == theirs.low) & (ours.high == theirs.high)
    return same
