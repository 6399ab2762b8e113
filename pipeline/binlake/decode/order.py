"""Ordering values of many records at once; ``changes.ordering_value`` defines the rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from binlake.decode.changes import EPOCH_BITS, FILE_BITS, POSITION_BITS, ordering_value

_EPOCH_SHIFT = FILE_BITS + POSITION_BITS
OUT_OF_RANGE = -1
#: The bits of a number below the epoch: a Kafka offset, or the sequence id of a store.
OFFSET_BITS = _EPOCH_SHIFT
#: From this value on (2000-01-01), the low bits of an ordering value are a snapshot's time in seconds.
EARLIEST_SNAPSHOT_S = 946_684_800
Int64s = npt.NDArray[np.int64]


def file_number(name: str) -> int:
    """The number after the last dot of a binlog file's name, OUT_OF_RANGE if there is none or it is too large."""
    digits = name.rpartition(".")[2]
    if not (digits.isascii() and digits.isdigit()):
        return OUT_OF_RANGE
    number = int(digits)
    return number if number < 1 << FILE_BITS else OUT_OF_RANGE


def binlog_order(epoch: int, file: str, position: int) -> int:
    """The ordering value of one position. Raises OverflowError if a part does not fit or the name has no number."""
    return ordering_value(epoch, file_number(file), position)


def streamed_orders(
    epochs: npt.NDArray[np.int64], files: Sequence[str | None], positions: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Ordering values of streamed rows, OUT_OF_RANGE where a part does not fit."""
    number_of = {name: file_number(name or "") for name in set(files)}
    if len(number_of) == 1:
        numbers = np.full(len(files), number_of[files[0]], dtype=np.int64)
    else:
        numbers = np.array([number_of[name] for name in files], dtype=np.int64)
    fits = (numbers >= 0) & (positions >= 0) & (positions < 1 << POSITION_BITS) & _epochs_fit(epochs)
    return np.where(fits, (epochs << _EPOCH_SHIFT) | (numbers << POSITION_BITS) | positions, OUT_OF_RANGE)


def snapshot_orders(epochs: npt.NDArray[np.int64], source_ms: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Ordering values of snapshot rows: file number 0, the source's seconds as position."""
    seconds = source_ms // 1000
    fits = (seconds >= 0) & (seconds < 1 << POSITION_BITS) & _epochs_fit(epochs)
    return np.where(fits, (epochs << _EPOCH_SHIFT) | seconds, OUT_OF_RANGE)


def offset_orders(epochs: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Ordering values of records without a binlog position: their Kafka offset, or a store's sequence id, below the
    epoch."""
    fits = (offsets >= 0) & (offsets < 1 << _EPOCH_SHIFT) & _epochs_fit(epochs)
    return np.where(fits, (epochs << _EPOCH_SHIFT) | offsets, OUT_OF_RANGE)


def _epochs_fit(epochs: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    return (epochs >= 0) & (epochs < 1 << EPOCH_BITS)


class OrderKind(StrEnum):
    """What the low bits of an ordering value hold."""

    BINLOG = "binlog"
    SNAPSHOT = "snapshot"
    OFFSET = "offset"


@dataclass(frozen=True, slots=True)
class OrderPlace:
    """An ordering value in its parts.

    Args:
        kind: a binlog position, a snapshot's time, or a Kafka offset.
        epoch: the highest part.
        file: the number of the binlog file; 0 for the other kinds.
        position: the position in the file, the snapshot's seconds since the Unix epoch, or the Kafka offset.
    """

    kind: OrderKind
    epoch: int
    file: int
    position: int

    @staticmethod
    def of(order: int) -> OrderPlace:
        """The parts of an ordering value. An offset from EARLIEST_SNAPSHOT_S on is taken for a snapshot's time."""
        epoch, low = order >> _EPOCH_SHIFT, order & ((1 << _EPOCH_SHIFT) - 1)
        file, position = low >> POSITION_BITS, low & ((1 << POSITION_BITS) - 1)
        if file:
            return OrderPlace(OrderKind.BINLOG, epoch, file, position)
        kind = OrderKind.SNAPSHOT if position >= EARLIEST_SNAPSHOT_S else OrderKind.OFFSET
        return OrderPlace(kind, epoch, 0, position)

    def __str__(self) -> str:
        epoch = f", epoch {self.epoch}" if self.epoch else ""
        if self.kind is OrderKind.BINLOG:
            return f"{self.file:06d}:{self.position}{epoch}"
        if self.kind is OrderKind.SNAPSHOT:
            return f"snapshot at {datetime.fromtimestamp(self.position, UTC):%Y-%m-%d %H:%M:%S}{epoch}"
        return f"offset {self.position}{epoch}"
