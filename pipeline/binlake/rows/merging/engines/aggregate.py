"""The engine ``aggregate``: each column is computed from all events of its key, which are facts and not states.

A row stands for the facts that its key has now: SELECT key, SUM(..), COUNT(..) ... GROUP BY key over them. Updates and
deletes of facts take back what the fact had added (``binlake.rows.upsert.engines.contributions`` refuses those that a
function cannot take back). Each event counts once (``heights``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.columns import chosen, column_of, valid
from binlake.rows.merging.engines.heights import NOTHING_COUNTED, FactHeights
from binlake.rows.merging.engines.sequence import Sequence, sequence
from binlake.rows.merging.engines.state import STATE, pack, unpack
from binlake.rows.merging.engines.sums import signed_sums
from binlake.rows.merging.states import KeyStates, MergeResult, RowStates
from binlake.rows.merging.truncate import StatesAfterTruncate, split_truncated, with_truncated
from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.merge import Place, records
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.errors import UnsupportedError
from hudilake.format.definition.merging import STATE_FIELD, WRITER_ORDER, Merging
from hudilake.format.files.file_group_write import FileGroupWrite

#: The entries of a row's state beside those of columns: the number of its facts, and the order of the newest event.
_FACTS: Final = "*"
_NEWEST: Final = ""
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The merger of a table.

    Args:
        merging: the functions of its columns.
        schema: the table's columns without meta fields, hidden ones among them.
        states: of its rows.
        heights: how far the table has counted facts.
    """

    merging: Merging
    schema: pa.Schema
    states: RowStates
    heights: FactHeights = NOTHING_COUNTED

    def merge(self, place: Place, file_id: str, rows: pa.Table) -> MergeResult:
        """See ``Merger``. Raises UnsupportedError where a sum does not fit its type, facts are taken back that were
        never counted, or rows of a second snapshot come."""
        rows, gone = split_truncated(rows)
        if not len(rows):
            return MergeResult(with_truncated(FileGroupWrite(place[0], file_id), gone), 0)
        fresh, reached = self.heights.counted(rows)
        counted = rows if fresh.all() else rows.filter(pa.array(fresh))
        again = records(rows) - records(counted)
        if not len(counted):
            return MergeResult(with_truncated(FileGroupWrite(place[0], file_id), gone), again, heights=reached)
        events = sequence(counted)
        fields = [field for field in self.schema if field.name not in (ORDER_FIELD, STATE_FIELD)]
        names = [field.name for field in fields]
        stored = StatesAfterTruncate(self.states, gone).of(place, file_id, events.keys, [*names, STATE_FIELD])
        write = self._write(place, file_id, events, stored, fields)
        return MergeResult(with_truncated(write, gone), again, heights=reached)

    def _write(
        self, place: Place, file_id: str, events: Sequence, stored: KeyStates, fields: list[pa.Field]
    ) -> FileGroupWrite:
        functions = dict(self.merging.functions)
        entries = [_FACTS, _NEWEST, *(f.name for f in fields)]
        before = unpack(stored.column(STATE), entries, _NONE)
        before[:, 0] = np.where(stored.alive, before[:, 0], 0)
        after = before.copy()
        signs = np.where(events.upserts, 1, -1)
        after[:, 0] += np.add.reduceat(signs, events.starts)
        least = after[:, 0]
        if self.heights.in_turn:
            least = before[:, 0] + np.minimum.reduceat(_running(signs, events), events.starts)
        newest = _newer(events, events.last(events.upserts), before[:, 1])
        after[:, 1] = np.maximum(before[:, 1], events.orders_at(newest, _NONE))
        columns: dict[str, pa.Array | pa.ChunkedArray] = {KEY: events.keys}
        for number, field in enumerate(fields, start=2):
            column, state = self._column(events, stored, field, functions.get(field.name), newest, before[:, number])
            columns[field.name], after[:, number] = column, state
        _check_counted(events, least, after, [i for i, f in enumerate(fields, 2) if functions.get(f.name) == "sum"])
        columns[ORDER_FIELD] = pa.array(np.full(len(events.keys), WRITER_ORDER, dtype=np.int64))
        columns[STATE_FIELD] = pack(entries, after)
        lives = pa.array(after[:, 0] > 0)
        rows = pa.table(columns)
        upserts, dead = rows.filter(lives), rows.filter(pc.invert(lives)).select([KEY, ORDER_FIELD])
        gone = dead.filter(pa.array(stored.alive[after[:, 0] <= 0]))
        return FileGroupWrite(place[0], file_id, upserts if len(upserts) else None, gone if len(gone) else None)

    def _column(
        self,
        events: Sequence,
        stored: KeyStates,
        field: pa.Field,
        function: str | None,
        newest: Int64s,
        state: Int64s,
    ) -> tuple[pa.Array | pa.ChunkedArray, Int64s]:
        """A column after the events, and its entry in the row's state."""
        incoming = column_of(events.rows, field)
        if function is None and (newest >= 0).all():
            return incoming.take(pa.array(events.positions[newest])), state
        known = stored.column(field)
        kept = np.where(stored.alive, np.arange(len(stored.alive)), -1)
        signs = np.where(events.upserts, 1, -1)
        if function is None:
            return chosen(incoming, events.rows_at(newest), known, np.where(newest >= 0, -1, kept)), state
        if function == "last_non_null":
            event = _newer(events, events.last(events.upserts & events.valid(incoming)), state)
            order = np.maximum(state, events.orders_at(event, _NONE))
            return chosen(incoming, events.rows_at(event), known, kept), order
        incoming = incoming.take(pa.array(events.positions))
        if function in ("min", "max"):
            return _extreme(events, incoming, known, largest=function == "max"), state
        if function == "collect":
            return _collected(events, incoming, known), state
        try:
            sums = signed_sums(incoming, signs, events.starts, known)
        except OverflowError as error:
            raise UnsupportedError(
                f"the sum of column {field.name} does not fit {field.type}",
                do_next="widen the column's type in the table, or correct the facts at the source",
                column=field.name,
            ) from error
        if function == "count":
            return sums, state
        count = np.where(stored.alive, np.maximum(state, 0), 0)
        count = count + np.add.reduceat(np.where(valid(incoming), signs, 0), events.starts)
        return pc.if_else(pa.array(count > 0), sums, pa.scalar(None, field.type)), count


def _newer(events: Sequence, at: Int64s, known: Int64s) -> Int64s:
    """The events that are not older than what is known, -1 for the others."""
    return np.where(events.orders_at(at, _NONE) >= known, at, -1)


def _extreme(events: Sequence, incoming: pa.ChunkedArray, known: pa.ChunkedArray, *, largest: bool) -> pa.ChunkedArray:
    """The least or the largest of what is known and the values that events add."""
    values = pa.chunked_array([*incoming.chunks, *known.chunks], incoming.type)
    codes = np.append(events.codes, np.arange(len(known)))
    usable = np.append(events.upserts, np.ones(len(known), dtype=np.bool_)) & valid(values)
    positions = np.flatnonzero(usable)
    pairs = pa.table({"code": codes[positions], "value": values.take(pa.array(positions))})
    sorting = [("code", "ascending"), ("value", "descending" if largest else "ascending")]
    ranked = positions[np.asarray(pc.sort_indices(pairs, sort_keys=sorting).to_numpy(), dtype=np.int64)]
    best = np.full(len(known), -1, dtype=np.int64)
    starts = np.flatnonzero(np.diff(codes[ranked], prepend=-1))
    best[codes[ranked][starts]] = ranked[starts]
    return values.take(pa.array(best, mask=best < 0))


def _collected(events: Sequence, incoming: pa.ChunkedArray, known: pa.ChunkedArray) -> pa.Array:
    """The JSON arrays that are known, with the JSON texts that events add."""
    positions = np.flatnonzero(events.upserts & valid(incoming))
    bounds = np.searchsorted(events.codes[positions], np.arange(len(known) + 1))
    texts = incoming.take(pa.array(positions)).combine_chunks()
    lists = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), texts)
    joined = pc.binary_join(lists, ",")
    old = known.combine_chunks()
    onto = pc.if_else(pc.is_valid(old), pc.binary_join_element_wise(pc.utf8_slice_codeunits(old, 0, -1), "", ","), "[")
    added = pc.binary_join_element_wise(onto, joined, "]", "")
    return pc.if_else(pa.array(np.diff(bounds) > 0), added, old)


def _running(signs: Int64s, events: Sequence) -> Int64s:
    """The sum of the signs of a key's events up to each event."""
    sums = np.cumsum(signs)
    before = (sums - signs)[events.starts]
    return np.asarray(sums - before[events.codes], dtype=np.int64)


def _check_counted(events: Sequence, least: Int64s, after: Int64s, sums: list[int]) -> None:
    """Raise UnsupportedError where more was taken back than was counted until then: ``least``, int64 of m, is the least
    number of facts that a key had between events."""
    less = (least < 0) | (after[:, sums] < 0).any(axis=1)
    if less.any():
        raise UnsupportedError(
            "facts are taken back that the table never counted",
            do_next="load the table again from a snapshot: it must know all facts that the source has",
            key=str(events.keys[int(np.flatnonzero(less)[0])]),
        )
