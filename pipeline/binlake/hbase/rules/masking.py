"""Which values delete markers mask, and how many versions of a column are visible; compiled.

The rules are HBase's, as its query matchers carry them out (``org.apache.hadoop.hbase.regionserver.querymatcher``):
``ScanDeleteTracker`` and ``ScanWildcardColumnTracker``, and with NEW_VERSION_BEHAVIOR ``NewVersionBehaviorTracker``.
All functions take the arrays of ``Ordered``.
"""

from __future__ import annotations

from typing import Final

import numpy as np

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


@compiled(LONG(LONGS, LONG))
def end_of(values: Longs, at: int) -> int:
    """The end of the run of equal values that begins at ``at``."""
    end = at + 1
    while end < len(values) and values[end] == values[at]:
        end += 1
    return end


@compiled(LONG(LONGS, LONGS, LONG, LONG, LONG))
def _has_version(timestamp: Longs, kind: Longs, at: int, end: int, wanted: int) -> int:
    """1 if a DeleteFamilyVersion of ``wanted`` is among the family's markers from ``at`` to ``end``, newest first."""
    low, high = at, end
    while low < high:
        middle = (low + high) // 2
        if timestamp[middle] > wanted:
            low = middle + 1
        else:
            high = middle
    while low < end and timestamp[low] == wanted:
        if kind[low] == DELETE_FAMILY_VERSION:
            return 1
        low += 1
    return 0


@compiled(NOTHING(LONGS, LONGS, LONGS, LONG, LONG, LONG, LONG, OUT_BYTES))
def _mask_column(
    timestamp: Longs, kind: Longs, start: Longs, first: int, markers: int, at: int, end: int, masked: Bytes
) -> None:
    """Sets ``masked`` of a column's values, ``at`` to ``end``; the family's markers are ``first`` to ``markers``."""
    family = _LEAST
    has_family = False
    for one in range(first, markers):
        if kind[one] == DELETE_FAMILY:
            family, has_family = timestamp[one], True
            break
    column = version = ranged = False
    version_at = range_at = _LEAST
    from_, next_from = _MOST, _MOST  # of the ranges that end after this timestamp; of all ranges so far
    for one in range(at, end):
        now = timestamp[one]
        if next_from < _MOST and now < range_at:
            from_, ranged = min(from_, next_from), True
        if kind[one] == DELETE_COLUMN:
            column = True
        elif kind[one] == DELETE:
            version, version_at = True, now
        elif kind[one] == DELETE_RANGE:
            next_from, range_at = min(next_from, start[one]), now
        elif (
            column
            or (version and version_at == now)
            or (ranged and from_ <= now)
            or (has_family and now <= family)
            or _has_version(timestamp, kind, first, markers, now)
        ):
            masked[one] = 1


@compiled(LONG(LONG, LONG, LONG, LONG))
def _matches(kind: int, marker: int, start: int, timestamp: int) -> int:
    """1 if a marker at the timestamp ``marker`` masks values of ``timestamp``."""
    if kind in (DELETE_COLUMN, DELETE_FAMILY):
        return 1 if timestamp <= marker else 0
    if kind == DELETE_RANGE:
        return 1 if start <= timestamp < marker else 0
    return 1 if timestamp == marker else 0


@compiled(LONG(LONGS, LONGS, LONG, LONG, OUT_BYTES))
def _trim(live: Longs, written: Longs, count: int, versions: int, masked: Bytes) -> int:
    """Masks the values of ``live`` that have ``versions`` newer ones, and returns how many are left.

    HBase counts the sequence ids of the newer ones: values that were written by one entry count once.
    """
    live[:count].sort()
    seen = np.zeros(count, dtype=np.int64)
    left = newer = 0
    for one in range(count):
        if newer >= versions:
            masked[live[one]] = 1
            continue
        live[left] = live[one]
        left += 1
        known = False
        for other in range(newer):
            known = known or seen[other] == written[live[one]]
        if not known:
            seen[newer] = written[live[one]]
            newer += 1
    return left


@compiled(NOTHING(LONGS, LONGS, LONGS, LONGS, LONG, LONG, LONG, LONG, LONG, OUT_BYTES))
def _mask_by_sequence(
    timestamp: Longs,
    kind: Longs,
    start: Longs,
    order: Longs,
    first: int,
    markers: int,
    at: int,
    end: int,
    versions: int,
    masked: Bytes,
) -> None:
    """As ``_mask_column``, but a marker masks only what was written before it or by the same entry.

    The column is written anew in the order of the sequence ids. Each marker finds the newest ``versions`` values and
    what they hide stays hidden, as in HBase: a delete does not expose a version that was surplus when it came.
    """
    cells = np.empty(markers - first + end - at, dtype=np.int64)
    values = 0
    for one in range(at, end):
        if kind[one] == PUT:
            cells[values] = one
            values += 1
    count = values
    for one in range(first, markers):
        cells[count] = one
        count += 1
    for one in range(at, end):
        if kind[one] != PUT:
            cells[count] = one
            count += 1
    live = np.empty(values, dtype=np.int64)
    size = 0
    for event in np.argsort(order[cells], kind="mergesort"):
        cell = cells[event]
        if kind[cell] == PUT:
            live[size] = cell
            size += 1
            continue
        if size > versions:
            size = _trim(live, order, size, versions, masked)
        left = 0
        for one in range(size):
            if _matches(kind[cell], timestamp[cell], start[cell], timestamp[live[one]]):
                masked[live[one]] = 1
            else:
                live[left] = live[one]
                left += 1
        size = left


@compiled(NOTHING(LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, OUT_BYTES))
def mask(
    group: Longs,
    column: Longs,
    family: Longs,
    timestamp: Longs,
    kind: Longs,
    start: Longs,
    order: Longs,
    by_sequence: Longs,
    versions: Longs,
    masked: Bytes,
) -> None:
    """Sets ``masked`` (uint8 of n, zeros) to 1 for each value that a marker masks. Rules are by family."""
    first = 0
    while first < len(group):
        after = end_of(group, first)
        markers = first
        while markers < after and kind[markers] <= DELETE_FAMILY_VERSION:
            markers += 1
        position = markers
        while position < after:
            end = end_of(column, position)
            if by_sequence[family[position]]:
                kept = versions[family[position]]
                _mask_by_sequence(timestamp, kind, start, order, first, markers, position, end, kept, masked)
            else:
                _mask_column(timestamp, kind, start, first, markers, position, end, masked)
            position = end
        first = after


@compiled(NOTHING(LONGS, LONGS, LONGS, LONGS, OUT_BYTES, LONGS, LONGS, LONGS, OUT_BYTES))
def show(
    column: Longs,
    family: Longs,
    timestamp: Longs,
    kind: Longs,
    masked: Bytes,
    versions: Longs,
    oldest: Longs,
    min_versions: Longs,
    shown: Bytes,
) -> None:
    """Sets ``shown`` (uint8 of n, zeros) to 1 for the values that a read has. Masked values are no versions."""
    position = 0
    while position < len(column):
        end = end_of(column, position)
        rule = family[position]
        count = 0
        for one in range(position, end):
            if kind[one] != PUT or masked[one]:
                continue
            count += 1
            if count > versions[rule]:
                break
            if count <= min_versions[rule] or timestamp[one] >= oldest[rule]:
                shown[one] = 1
        position = end
