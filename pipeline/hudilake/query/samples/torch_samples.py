"""Samples as a PyTorch data set. PyTorch is no dependency of binlake: without it the same class is a plain iterable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import ConfigError
from hudilake.query.samples.position import Position, Shard
from hudilake.query.samples.samples import Samples

try:
    import torch
    from torch.utils.data import IterableDataset, get_worker_info
except ImportError:
    torch, IterableDataset, get_worker_info = None, object, lambda: None

#: A column of a batch: a tensor (an array without PyTorch) of n numbers, or a list of n values.
Column = Any


class TorchSamples(IterableDataset):  # type: ignore[misc]
    """An ``IterableDataset`` over batches: give it to a ``DataLoader`` with ``batch_size=None``.

    A batch is (columns by name, position as JSON). Numbers and booleans are tensors, null as NaN; a column of another
    type is a list. The workers of a loader share the file groups; the position says which shard it belongs to.

    Args:
        source: path or URI of the table.
        since: a position, or one for each worker.
        shard: the part of the table for this process, as (index, count).
        arguments: those of ``Samples``.
    """

    def __init__(
        self,
        source: str,
        *,
        since: Position | Sequence[Position] | None = None,
        shard: tuple[int, int] = (0, 1),
        **arguments: Any,  # noqa: ANN401 - checked by Samples
    ) -> None:
        self._source, self._shard, self._arguments = source, Shard(*shard), arguments
        self._since = [since] if isinstance(since, Position) else list(since or [])

    def __iter__(self) -> Iterator[tuple[dict[str, Column], str]]:
        """The batches of this worker's part. Raises as ``Samples``."""
        worker = get_worker_info()
        index, count = (0, 1) if worker is None else (worker.id, worker.num_workers)
        part = self._shard.part(index, count)
        samples = Samples(self._source, since=self._position(part), shard=(part.index, part.count), **self._arguments)
        for batch in samples.batches():
            yield columns_of(batch.rows), batch.position.to_json()

    def _position(self, part: Shard) -> Position | None:
        if not self._since:
            return None
        for position in self._since:
            if position.shard == part:
                return position
            if position.shard == self._shard and position.step is None:
                return Position(position.completed, shard=part)
        raise ConfigError(
            f"there is no position for shard {part.index} of {part.count}",
            do_next="give the last position of each worker, and as many workers as before",
        )


def columns_of(rows: pa.RecordBatch) -> dict[str, Column]:
    """The columns of n rows, as ``TorchSamples`` returns them."""
    return {name: _column(rows.column(name)) for name in rows.schema.names}


def _column(values: pa.Array) -> Column:
    numbers = _numbers(values)
    if numbers is None:
        return values.to_pylist()
    return numbers if torch is None else torch.from_numpy(numbers)


def _numbers(values: pa.Array) -> npt.NDArray[Any] | None:
    """Numbers as an array that may be written to; None for other types."""
    kind = values.type
    if pa.types.is_decimal(kind):
        values = values.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        return None
    if values.null_count:
        values = pc.fill_null(values.cast(pa.float64()), float("nan"))
    return np.array(values.to_numpy(zero_copy_only=False))
