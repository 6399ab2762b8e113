"""Append tables: the file groups that take further rows, the generated keys, the files with added rows only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.definition.kind import TableKind
from hudilake.format.files.names import STEADY_TOKEN, parse_log_name
from hudilake.format.files.view import BaseFile, FileSlice
from hudilake.policies import FileSizePolicy


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """A file group that takes further rows. ``size``: the bytes of its newest slice."""

    file_id: str
    size: int
    base: BaseFile | None = None


def open_groups(slices: Iterable[FileSlice], sizes: FileSizePolicy) -> dict[str, tuple[OpenGroup, ...]]:
    """The open file groups by partition path, the largest first, so that they become full one after the other."""
    groups_by_path: dict[str, list[OpenGroup]] = {}
    for piece in slices:
        size = piece.base_size + piece.log_size
        if size < sizes.small_bytes:
            groups_by_path.setdefault(piece.partition_path, []).append(OpenGroup(piece.file_id, size, piece.base_file))
    return {path: tuple(sorted(groups, key=lambda g: (-g.size, g.file_id))) for path, groups in groups_by_path.items()}


def rows_never_merge(kind: TableKind, log_files: Iterable[str]) -> bool:
    """Whether a slice with these log files (bare names) has every row that was written to it: one of an append table.

    Log files of binlake hold added rows only, but those of an erasure. Hudi Spark can update and delete rows by their
    generated keys. Log files of both have another write token.
    """
    if not kind.appends:
        return False
    parsed = [parse_log_name(name) for name in log_files]
    return all(name is not None and name.write_token == STEADY_TOKEN for name in parsed)


def append_keys(instant: str, number: int, first: int, count: int) -> pa.Array:
    """Record keys as Hudi generates them for rows without a key: ``<instant>_<writer>_<row>``, string array.

    Args:
        instant: of the commit.
        number: of the writer, unique in the commit.
        first: the writer's number of the first row; it counts over all partitions.
        count: how many.
    """
    numbers = pa.array(np.arange(first, first + count, dtype=np.int64)).cast(pa.string())
    return pc.binary_join_element_wise(pa.scalar(f"{instant}_{number}_"), numbers, "")
