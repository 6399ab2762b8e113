"""Mixing of successive samples: whole buffers of rows in a random order that a position can find again."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from pipeline.errors import ConfigError
from pipeline.samples.batches import SampleBatch
from pipeline.samples.position import Position, Shuffled


@dataclass
class ShuffleBuffer:
    """A buffer that is filled, and then given in a random order.

    The order depends on the seed and the position before the buffer alone, so an iteration that goes on within a
    buffer fills it again and leaves out what was given.

    Args:
        size: rows to fill it with.
        seed: of the order.
        batch_rows: the largest number of rows of a batch.
        start: the position before the first row; its ``shuffled`` says what to leave out.
    """

    size: int
    seed: int
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
        start, end = self.start, self._batches[-1].position
        if start.shuffled is not None and self._rows != start.shuffled.rows:
            raise ConfigError(
                f"the position is inside a shuffle buffer of {start.shuffled.rows} rows, now there are {self._rows}",
                do_next="go on with the same columns, complete, changes, until and step_commits as before",
            )
        rows = pa.Table.from_batches([batch.rows for batch in self._batches])
        base = replace(start, shuffled=None)
        random = np.random.default_rng([self.seed, zlib.crc32(base.to_json().encode())])
        order, skipped = random.permutation(self._rows), 0 if start.shuffled is None else start.shuffled.given
        self._batches, self.start = [], end
        count, self._rows = self._rows, 0
        for low in range(skipped, count, self.batch_rows):
            high = min(low + self.batch_rows, count)
            position = end if high == count else replace(base, shuffled=Shuffled(count, high))
            chosen = rows.take(pa.array(order[low:high])).combine_chunks()
            yield SampleBatch(chosen.to_batches()[0], position)
