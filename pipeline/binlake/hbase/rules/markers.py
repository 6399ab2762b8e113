"""Which delete markers still mask a value; compiled. All functions take the arrays of ``ordered.Ordered``."""

from __future__ import annotations

from typing import Final

import numpy as np

from binlake.hbase.rules.masking import end_of
from binlake.hbase.rules.ordered import (
    DELETE,
    DELETE_COLUMN,
    DELETE_FAMILY,
    DELETE_FAMILY_VERSION,
    DELETE_RANGE,
    PUT,
    Bytes,
    Longs,
)
from hudilake.compiled import LONG, LONGS, NOTHING, OUT_BYTES, compiled

_MOST: Final = np.int64(np.iinfo(np.int64).max)
_LEAST: Final = np.int64(np.iinfo(np.int64).min)


@compiled(NOTHING(LONGS, LONGS, LONGS, LONGS, OUT_BYTES, LONG, LONG, OUT_BYTES))
def _in_column(
    timestamp: Longs, kind: Longs, start: Longs, order: Longs, kept: Bytes, at: int, end: int, used: Bytes
) -> None:
    """Sets ``used`` of a column's markers, ``at`` to ``end``, from the oldest timestamp on."""
    any_value = any_version = False
    least, version_least, version_at = _MOST, _MOST, _LEAST
    for one in range(end - 1, at - 1, -1):
        if kind[one] == PUT:
            if kept[one]:
                same = any_version and version_at == timestamp[one]
                version_least = min(version_least, order[one]) if same else order[one]
                any_version, version_at = True, timestamp[one]
                least, any_value = min(least, order[one]), True
        elif kind[one] == DELETE_COLUMN:
            used[one] = any_value and least <= order[one]
        elif kind[one] == DELETE:
            used[one] = any_version and version_at == timestamp[one] and version_least <= order[one]
        elif kind[one] == DELETE_RANGE:
            for value in range(one + 1, end):
                covered = kind[value] == PUT and start[one] <= timestamp[value] < timestamp[one]
                if covered and kept[value] and order[value] <= order[one]:
                    used[one] = 1


@compiled(NOTHING(LONGS, LONGS, LONGS, OUT_BYTES, LONG, LONG, LONG, OUT_BYTES))
def _of_family(
    timestamp: Longs, kind: Longs, order: Longs, kept: Bytes, first: int, at: int, end: int, used: Bytes
) -> None:
    """Sets ``used`` of a family's markers, ``first`` to ``at``; its values are ``at`` to ``end``."""
    places = np.empty(end - at, dtype=np.int64)
    count = 0
    for one in range(at, end):
        if kind[one] == PUT and kept[one]:
            places[count] = one
            count += 1
    places = places[:count]
    rising = places[np.argsort(timestamp[places], kind="mergesort")]
    times = timestamp[rising]
    least = order[rising]
    for one in range(1, count):
        least[one] = min(least[one], least[one - 1])
    for one in range(first, at):
        upto = np.searchsorted(times, timestamp[one], side="right")
        if kind[one] == DELETE_FAMILY:
            used[one] = upto > 0 and least[upto - 1] <= order[one]
        elif kind[one] == DELETE_FAMILY_VERSION:
            value = upto - 1
            while value >= 0 and times[value] == timestamp[one]:
                if order[rising[value]] <= order[one]:
                    used[one] = 1
                value -= 1


@compiled(NOTHING(LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, OUT_BYTES, OUT_BYTES))
def mark_used(
    group: Longs, column: Longs, timestamp: Longs, kind: Longs, start: Longs, order: Longs, kept: Bytes, used: Bytes
) -> None:
    """Sets ``used`` (uint8 of n, zeros) to 1 for each marker that masks a value which is kept.

    Args:
        order: the sequence ids; of families whose markers do not go by them, one number for all cells.
        kept: 1 for the cells that are kept.
    """
    first = 0
    while first < len(group):
        after = end_of(group, first)
        position = first
        while position < after and kind[position] <= DELETE_FAMILY_VERSION:
            position += 1
        if position > first:
            _of_family(timestamp, kind, order, kept, first, position, after, used)
        while position < after:
            end = end_of(column, position)
            _in_column(timestamp, kind, start, order, kept, position, end, used)
            position = end
        first = after
