"""What rows are now, from the file slices and tombstones of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.hudi.definition.merging import WRITER_ORDER, Merging
from pipeline.hudi.definition.schema import RECORD_KEY_FIELD
from pipeline.hudi.files.view import FileSlice
from pipeline.hudi.read.slice import SliceReader
from pipeline.hudi.timeline.timeline import Timeline
from pipeline.merging.states import KeyStates
from pipeline.merging.tombstones import Tombstones
from pipeline.storage.base import Storage
from pipeline.upsert.merge import Place
from pipeline.upsert.target import ORDER_FIELD


@dataclass(frozen=True)
class SliceRowStates:
    """The row states of one state of a table.

    Args:
        storage: the table's root.
        timeline: loaded; decides which log blocks and tombstones are visible.
        schema: the table's columns without meta fields. Columns that files lack are null.
        merging: of the table.
        slices: the newest file slice of each file group, by file id.
    """

    storage: Storage
    timeline: Timeline
    schema: pa.Schema
    merging: Merging
    slices: Mapping[str, FileSlice]

    def of(self, place: Place, file_id: str, keys: pa.Array, columns: Sequence[str]) -> KeyStates:
        """As ``states.RowStates.of``."""
        live, dead = self._live(file_id, columns), self._dead(file_id, columns)
        at, dead_at = _found(keys, live), _found(keys, dead)
        index = np.where(at >= 0, at, np.where(dead_at >= 0, dead_at + len(live), -1))
        rows = pa.concat_tables([live, dead]).select(list(columns)).take(pa.array(index, mask=index < 0))
        return KeyStates(at >= 0, rows)

    def _live(self, file_id: str, columns: Sequence[str]) -> pa.Table:
        piece = self.slices.get(file_id)
        if piece is None:
            return self._fields(columns).empty_table()
        rows = self._reader((ORDER_FIELD, *columns)).read(piece)
        return self._with_plain_order(rows).select(self._fields(columns).names)

    def _dead(self, file_id: str, columns: Sequence[str]) -> pa.Table:
        schema = self._fields(columns)
        rows = Tombstones(self.storage, self.timeline).of(file_id)
        return schema.empty_table() if rows is None else _aligned(rows, schema)

    def _fields(self, columns: Iterable[str]) -> pa.Schema:
        """The record key and the columns, none twice."""
        names = [name for name in dict.fromkeys(columns) if name != RECORD_KEY_FIELD]
        hidden = {name: pa.field(name, pa.int64()) for name in (*self.merging.hidden_fields, ORDER_FIELD)}
        return pa.schema(
            [pa.field(RECORD_KEY_FIELD, pa.string())] + [hidden.get(n) or self.schema.field(n) for n in names]
        )

    def _reader(self, columns: Iterable[str]) -> SliceReader:
        return SliceReader(self.storage, self._fields(columns), ORDER_FIELD, self.timeline)

    def _with_plain_order(self, rows: pa.Table) -> pa.Table:
        """A row that was written before the table had groups is the first group's, at its own ordering value."""
        first = next(iter(self.merging.hidden_fields), "")
        if first not in rows.column_names:
            return rows
        order = rows.column(ORDER_FIELD)
        plain = pc.if_else(pc.less(order, WRITER_ORDER), order, pa.scalar(None, pa.int64()))
        at = rows.column_names.index(first)
        return rows.set_column(at, first, pc.coalesce(rows.column(first), plain))


def _aligned(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a schema; absent ones are null."""
    held = set(rows.column_names)
    columns = [rows.column(f.name).cast(f.type) if f.name in held else pa.nulls(len(rows), f.type) for f in schema]
    return pa.table(columns, schema=schema)


def _found(keys: pa.Array, rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For each key the index of its row, -1 for none."""
    column = rows.column(RECORD_KEY_FIELD).combine_chunks()
    return np.asarray(pc.fill_null(pc.index_in(keys, value_set=column), -1).to_numpy(), dtype=np.int64)
