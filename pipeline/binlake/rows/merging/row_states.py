"""What rows are now, from the file slices and tombstones of a table.

Orders, and whether a row lives, come from memory, as values do (``state_cache``). What the memory lacks is read from
the file slice.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.group_orders import NEVER
from binlake.rows.merging.state_cache import ORDERS_BYTES, KeptOrders, KeptRows, SliceFiles, StateCache, aligned
from binlake.rows.merging.states import KeyStates
from binlake.rows.merging.tombstones import TombstoneFiles, Tombstones
from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.merge import Place
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.merging import WRITER_ORDER, Merging
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.view import FileSlice, LogFile
from hudilake.format.timeline.timeline import Timeline
from hudilake.index.key_map import KeyMap
from hudilake.read.slice import SliceReader
from hudilake.storage.base import Storage

#: So many pieces of rows are put together.
_CHUNKS = 8


@dataclass(frozen=True)
class SliceRowStates:
    """The row states of one state of a table.

    Args:
        storage: the table's root.
        timeline: loaded; decides which log blocks and tombstones are visible.
        schema: the table's columns without meta fields. Columns that files lack are null.
        merging: of the table.
        slices: the newest file slice of each file group, by file id.
        orders: those that are kept from commit to commit, by file id.
        kept: the rows that are kept, by owner and file id.
        owner: of the rows of this table among those of the process.
    """

    storage: Storage
    timeline: Timeline
    schema: pa.Schema
    merging: Merging
    slices: Mapping[str, FileSlice]
    orders: StateCache[KeptOrders] = field(default_factory=partial(StateCache[KeptOrders], ORDERS_BYTES))
    kept: StateCache[KeptRows] = field(default_factory=partial(StateCache[KeptRows], 0))
    owner: Hashable = None

    def of(self, place: Place, file_id: str, keys: pa.Array, columns: Sequence[str]) -> KeyStates:
        """Returns the states of n keys: from memory if all columns are orders, otherwise from files."""
        if set(columns) <= set(self._longs):
            return self._from_memory(file_id, keys, columns)
        live, dead = self.live(file_id, columns), self.dead(file_id, columns)
        live_positions, dead_at = _found(keys, live), _found(keys, dead)
        index = np.where(live_positions >= 0, live_positions, np.where(dead_at >= 0, dead_at + len(live), -1))
        held = pa.concat_tables([live, dead]).select(list(columns))
        return KeyStates(live_positions >= 0, held, pa.array(index, mask=index < 0))

    @property
    def _longs(self) -> tuple[str, ...]:
        """The columns that the cache has: the groups' orders, and last the ordering value, NEVER for a dead row."""
        return (*self.merging.hidden_fields, ORDER_FIELD)

    def _from_memory(self, file_id: str, keys: pa.Array, columns: Sequence[str]) -> KeyStates:
        values = self._index(file_id).get(keys, NEVER)
        rows = _table(self._longs, values)
        return KeyStates(values[-1] != NEVER, rows.select(list(columns)))

    def _index(self, file_id: str) -> KeyMap:
        """The longs of the file group's keys, as its slice has them now."""
        piece, entry = self.slices.get(file_id), self.orders.get(file_id)
        further = entry.files.further(piece) if entry is not None else None
        if entry is None or entry.index.columns != len(self._longs) or further is None:
            index = self._read_index(file_id)
        else:
            index = entry.index
            if further:
                self._read_further(file_id, index, further)
        self.orders.put(file_id, KeptOrders(SliceFiles.of(piece), index))
        return index

    def _read_index(self, file_id: str) -> KeyMap:
        index = KeyMap(len(self._longs))
        self._put(index, self.dead(file_id, self.merging.hidden_fields))
        if (piece := self.slices.get(file_id)) is not None:
            rows = self._reader(self._fields(self._longs)).read(piece)
            self._put(index, self._with_plain_order(rows))
        return index

    def _read_further(self, file_id: str, index: KeyMap, further: Sequence[LogFile]) -> None:
        def known(keys: pa.Array) -> pa.Table:
            values = index.get(keys, NEVER)
            live = _table(self._longs, values).add_column(0, RECORD_KEY_FIELD, keys)
            return live.filter(pa.array(values[-1] != NEVER))

        rows, gone = self._reader(self._fields(self._longs)).read_further(further, known)
        if len(gone):
            dead = self.dead(file_id, self.merging.hidden_fields)
            positions = _found(gone, dead)
            orders = dead.drop_columns([RECORD_KEY_FIELD]).take(pa.array(positions, mask=positions < 0))
            self._put(index, orders.add_column(0, RECORD_KEY_FIELD, gone))
        self._put(index, self._with_plain_order(rows))

    def _put(self, index: KeyMap, rows: pa.Table) -> None:
        """Rows with their ordering values, or tombstones, which have none."""
        held = set(rows.column_names)
        columns = [
            pc.fill_null(rows.column(name), NEVER).to_numpy() if name in held else np.full(len(rows), NEVER)
            for name in self._longs
        ]
        keys = rows.column(RECORD_KEY_FIELD).combine_chunks()
        index.put(keys, np.asarray(np.stack(columns), dtype=np.int64))

    def live(self, file_id: str, columns: Sequence[str]) -> pa.Table:
        """The rows of a file group, with the record key and the columns. Errors as ``of``."""
        fields, piece = self._fields(columns), self.slices.get(file_id)
        if piece is None:
            return fields.empty_table()
        rows = self._rows(file_id, piece, self._fields((ORDER_FIELD, *columns)))
        return self._with_plain_order(rows).select(fields.names)

    def _rows(self, file_id: str, piece: FileSlice, fields: pa.Schema) -> pa.Table:
        """The rows of a slice with these columns, and perhaps with others."""
        group = (self.owner, file_id)
        entry = self.kept.get(group)
        further = entry.files.further(piece) if entry is not None and entry.has(fields) else None
        rows = self._grown(entry, further) if entry is not None and further is not None else None
        if rows is None:
            rows = self._reader(entry.wider(fields) if entry is not None else fields).read(piece)
        deleted = entry.deleted if entry is not None else TombstoneFiles()
        written = entry.written if entry is not None and further == () else {}
        self.kept.put(group, KeptRows(SliceFiles.of(piece), rows, deleted, written))
        return rows

    def _grown(self, entry: KeptRows, further: Sequence[LogFile]) -> pa.Table | None:
        """The rows of a slice with further log files; None where one of them has a row that no merging writer wrote:
        it may lose to a delete, which the rows do not show."""
        if not further:
            return entry.rows
        if all(file.path in entry.written for file in further):
            grown = entry.rows
            for file in further:
                grown = entry.written[file.path].over(grown)
            return _in_few_chunks(grown)
        stays = np.ones(len(entry.rows), dtype=np.bool_)

        def known(keys: pa.Array) -> pa.Table:
            met = pc.is_in(entry.rows.column(RECORD_KEY_FIELD), value_set=keys)
            stays[met.to_numpy()] = False
            return entry.rows.filter(met)

        rows, _ = self._reader(entry.rows.schema).read_further(further, known)
        if pc.any(pc.less(rows.column(ORDER_FIELD), WRITER_ORDER)).as_py():
            return None
        return _in_few_chunks(pa.concat_tables([entry.rows.filter(pa.array(stays)), rows]))

    def dead(self, file_id: str, columns: Sequence[str]) -> pa.Table:
        """Its tombstones, with the record key and the columns, also those of rows that live again. Errors as ``of``."""
        schema, group = self._fields(columns), (self.owner, file_id)
        entry = self.kept.get(group)
        files = entry.deleted if entry is not None else None
        rows = Tombstones(self.storage, self.timeline, files).of(file_id)
        if entry is not None:
            self.kept.put(group, entry)  # with the files that were read now
        return schema.empty_table() if rows is None else aligned(rows, schema)

    def _fields(self, columns: Iterable[str]) -> pa.Schema:
        """The record key and the columns, none twice."""
        names = [name for name in dict.fromkeys(columns) if name != RECORD_KEY_FIELD]
        hidden = {name: pa.field(name, pa.int64()) for name in (*self.merging.hidden_fields, ORDER_FIELD)}
        return pa.schema(
            [pa.field(RECORD_KEY_FIELD, pa.string())] + [hidden.get(n) or self.schema.field(n) for n in names]
        )

    def _reader(self, fields: pa.Schema) -> SliceReader:
        return SliceReader(self.storage, fields, ORDER_FIELD, self.timeline)

    def _with_plain_order(self, rows: pa.Table) -> pa.Table:
        """A row that was written before the table had groups is the first group's, at its own ordering value."""
        first = next(iter(self.merging.hidden_fields), "")
        if first not in rows.column_names:
            return rows
        order = rows.column(ORDER_FIELD)
        plain = pc.if_else(pc.less(order, WRITER_ORDER), order, pa.scalar(None, pa.int64()))
        column_index = rows.column_names.index(first)
        return rows.set_column(column_index, first, pc.coalesce(rows.column(first), plain))


def _table(names: Sequence[str], values: Int64s) -> pa.Table:
    """Longs as columns, null for NEVER."""
    return pa.table({name: pa.array(row, mask=row == NEVER) for name, row in zip(names, values, strict=True)})


def _in_few_chunks(rows: pa.Table) -> pa.Table:
    return rows if rows.column(0).num_chunks < _CHUNKS else rows.combine_chunks()


def _found(keys: pa.Array, rows: pa.Table) -> Int64s:
    """For each key the index of its row, -1 for none."""
    column = rows.column(RECORD_KEY_FIELD).combine_chunks()
    return np.asarray(pc.fill_null(pc.index_in(keys, value_set=column), -1).to_numpy(), dtype=np.int64)
