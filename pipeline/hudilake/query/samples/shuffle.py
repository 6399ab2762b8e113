"""Mixing of successive samples: whole buffers of rows in a random order that a position can find again."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from hudilake.errors import ConfigError
from hudilake.query.samples.batches import SampleBatch
from hudilake.query.samples.position import Position, Shuffled


@dataclass
class ShuffleBuffer:
    """A buffer that is filled, and then given in a random order.

    The order depends on the seed and the position before the buffer alone, so an iteration that goes on within a
    buffer fills it again, by the same steps, and leaves out what was given.

    Args:
        size: rows to fill it with.
        seed: of the order.
        commits: the most commits of a step.
        rule: which rows are samples, as a number.
        batch_rows: the largest number of rows of a batch.
        start: the position before the first row; its ``shuffled`` says what to leave out.
    """

    size: int
    seed: int
    commits: int
    rule: int
    batch_rows: int
    start: Position
    _batches: list[SampleBatch] = field(default_factory=list)
    _rows: int = 0

    @property
    def room(self) -> int:
        """Rows that it still takes."""
        wanted = self.size if self.start.shuffled is None else self.start.shuffled.rows
        return wanted - self._rows

    def add(self, batch: SampleBatch) -> Iterator[SampleBatch]:
        """Add at most ``room`` rows; all rows in random order once it is full."""
        self._batches.append(batch)
        self._rows += batch.rows.num_rows
        if not self.room:
            yield from self.drain()

    def drain(self) -> Iterator[SampleBatch]:
        """The rows that are in it, in random order."""
        if not self._batches:
            return
        base, end = replace(self.start, shuffled=None), self._batches[-1].position
        rows = pa.Table.from_batches([batch.rows for batch in self._batches])
        filled = self._filled(end)
        random = np.random.default_rng([filled.seed or 0, zlib.crc32(base.to_json().encode())])
        order = random.permutation(filled.rows)
        self._batches, self._rows, self.start = [], 0, end
        for low in range(filled.given, filled.rows, self.batch_rows):
            high = min(low + self.batch_rows, filled.rows)
            position = end if high == filled.rows else replace(base, shuffled=replace(filled, given=high))
            chosen = rows.take(pa.array(order[low:high])).combine_chunks()
            yield SampleBatch(chosen.to_batches()[0], position)

    def _filled(self, end: Position) -> Shuffled:
        """What a position says of this buffer. ``end``: the position after its last row."""
        again = self.start.shuffled
        if again is None:
            return Shuffled(self._rows, 0, end.step or end.completed, self.commits, self.seed, self.rule)
        if self._rows != again.rows:
            raise ConfigError(
                f"the position is inside a shuffle buffer of {again.rows} rows, now there are {self._rows}",
                do_next="go on with the same columns, complete, changes and until as before",
            )
        return again if again.seed is not None else replace(again, seed=self.seed)
