"""The files and row groups that queries read, by the least and greatest values in Parquet footers: one rule for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.layouts.rows import SCHEMA
from hudilake.read import Filter
from hudilake.read.filters.bounds import ColumnBounds, may_match
from hudilake.read.filters.expressions import normalised

ASKED: Final = ("url", "customer", "placed", "paid")
#: The least and the greatest value; None where they are not known.
_Range: TypeAlias = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Footers:
    """The ranges of n row groups of m files.

    Args:
        owner: the file of each row group, int64 array of n.
        rows: of each row group, int64 array of n.
        groups, files: the bounds of each column over row groups, and over files.
        bytes: of all files.
    """

    owner: np.ndarray[tuple[int], np.dtype[np.int64]]
    rows: np.ndarray[tuple[int], np.dtype[np.int64]]
    groups: Mapping[str, ColumnBounds]
    files: Mapping[str, ColumnBounds]
    bytes: int

    @property
    def count(self) -> int:
        """The number of files."""
        return int(self.owner.max()) + 1

    def rows_of_files(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The rows of each file, int64 array of m."""
        return np.bincount(self.owner, weights=self.rows).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Read:
    """What queries of one kind read, on average: files, row groups, and the rows of these row groups."""

    files: float
    row_groups: float
    rows: float


def footers(paths: Iterable[Path]) -> Footers:
    """The footers of a table's files. A row group without ranges of a column may have any value."""
    owner, rows, size = [], [], 0
    found: dict[str, list[_Range]] = {name: [] for name in ASKED}
    for number, path in enumerate(sorted(paths)):
        metadata = pq.read_metadata(path)
        size += path.stat().st_size
        names = metadata.schema.to_arrow_schema().names
        for place in range(metadata.num_row_groups):
            group = metadata.row_group(place)
            owner.append(number)
            rows.append(group.num_rows)
            for name in ASKED:
                statistics = group.column(names.index(name)).statistics
                known = statistics is not None and statistics.has_min_max
                found[name].append((statistics.min, statistics.max) if known else (None, None))
    owners = np.array(owner, dtype=np.int64)
    groups = {name: _bounds(name, pairs) for name, pairs in found.items()}
    by_file = {name: _bounds(name, _of_files(pairs, owners)) for name, pairs in found.items()}
    return Footers(owners, np.array(rows, dtype=np.int64), groups, by_file, size)


def _of_files(pairs: Sequence[_Range], owner: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[_Range]:
    """The ranges of files from those of their row groups."""
    by_file: dict[int, list[_Range]] = {}
    for number, pair in zip(owner.tolist(), pairs, strict=True):
        by_file.setdefault(number, []).append(pair)
    return [(_least(pair[0] for pair in mine), _greatest(pair[1] for pair in mine)) for mine in by_file.values()]


def _least(values: Iterable[Any]) -> Any:  # noqa: ANN401 - values of one column
    found = list(values)
    return None if None in found else min(found)


def _greatest(values: Iterable[Any]) -> Any:  # noqa: ANN401 - values of one column
    found = list(values)
    return None if None in found else max(found)


def _bounds(name: str, pairs: Sequence[_Range]) -> ColumnBounds:
    kind = SCHEMA.field(name).type
    sides = [pa.array([pair[side] for pair in pairs], kind) for side in (0, 1)]
    return ColumnBounds(kind, sides[0], sides[1], np.ones(len(pairs), np.bool_), np.zeros(len(pairs), np.bool_))


def read_by(queries: Sequence[Filter], found: Footers) -> Read:
    """What the queries read on average: first files are chosen, then row groups inside of them."""
    files = groups = rows = 0
    for query in queries:
        condition = normalised(query)
        kept = may_match(condition, found.files, found.count)
        inside = may_match(condition, found.groups, len(found.owner)) & kept[found.owner]
        files += int(kept.sum())
        groups += int(inside.sum())
        rows += int(found.rows[inside].sum())
    return Read(files / len(queries), groups / len(queries), rows / len(queries))
