"""Rows of many file groups and commits as batches of even size, each with the position after it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from hudilake.query.samples.position import LastRow, SamplePosition, Shard
from hudilake.query.samples.states import GroupRows
from hudilake.query.samples.steps import SampleStep


@dataclass(frozen=True)
class SampleBatch:
    """Samples, and the position after them.

    Example:
        >>> batch = next(hudilake.Samples(orders.uri, columns=["id"], since=hudilake.SamplePosition()).batches())
        >>> batch.rows.schema.names, type(batch.position).__name__
        (['id'], 'SamplePosition')
    """

    rows: pa.RecordBatch
    position: SamplePosition


@dataclass(frozen=True)
class GroupSamples:
    """The new samples of a file group in a step. ``found`` is None at the end of a step."""

    step: SampleStep
    found: GroupRows | None


@dataclass(frozen=True)
class _PendingRows:
    """Rows that wait for their batch. ``keys``: None for an end of a step, which has no rows."""

    step: SampleStep
    group: tuple[str, str]
    keys: pa.Array | None
    rows: pa.Table

    def position(self, taken: int, shard: Shard) -> SamplePosition:
        """The position after the first ``taken`` rows."""
        if self.keys is None:
            return SamplePosition(self.step.end, shard=shard)
        place = LastRow(*self.group, self.keys[taken - 1].as_py())
        return SamplePosition(self.step.begin, self.step.end, place, shard=shard)


class Batches:
    """Collects rows until a batch is full.

    Args:
        schema: of the rows.
        most: the largest number of rows of a batch; it may be changed between two batches.
        shard: for the positions.
        position: before the first row.
    """

    def __init__(self, schema: pa.Schema, most: int, shard: Shard, position: SamplePosition) -> None:
        self._schema, self._shard, self.most = schema, shard, most
        self._waiting: deque[_PendingRows] = deque()
        self._rows = 0
        self.position = position

    def add(self, given: GroupSamples) -> Iterator[SampleBatch]:
        """Add rows; the batches that are full now."""
        group_rows = given.found
        if group_rows is None:
            self._waiting.append(_PendingRows(given.step, ("", ""), None, self._schema.empty_table()))
        elif group_rows.rows.num_rows:
            self._waiting.append(_PendingRows(given.step, group_rows.group, group_rows.keys, group_rows.rows))
            self._rows += group_rows.rows.num_rows
        while self._rows >= self.most:
            yield self._take(self.most)

    def rest(self) -> Iterator[SampleBatch]:
        """The last batch, if rows are left; the position moves over steps without rows, too."""
        if self._rows:
            yield self._take(self._rows)
        self._skip_ends()

    def _take(self, count: int) -> SampleBatch:
        parts, left = [], count
        while left:
            first = self._waiting.popleft()
            taken = min(left, first.rows.num_rows)
            if taken or first.keys is None:
                self.position = first.position(taken, self._shard)
            parts.append(first.rows.slice(0, taken))
            left -= taken
            if taken < first.rows.num_rows and first.keys is not None:
                rest = _PendingRows(first.step, first.group, first.keys.slice(taken), first.rows.slice(taken))
                self._waiting.appendleft(rest)
        self._rows -= count
        self._skip_ends()
        return SampleBatch(one_batch(pa.concat_tables(parts), self._schema), self.position)

    def _skip_ends(self) -> None:
        while self._waiting and self._waiting[0].keys is None:
            self.position = self._waiting.popleft().position(0, self._shard)


def one_batch(rows: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """A table as one batch."""
    whole = [column.combine_chunks() for column in rows.columns]
    return pa.RecordBatch.from_arrays(whole, schema=schema)
