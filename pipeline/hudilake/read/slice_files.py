"""File slices and the flat list of their files, so that statistics of files select slices in whole columns.

A slice is skipped only if none of its files may hold a row that passes. Skipping a single file of a slice would be
wrong: the newest version of a row hides the older ones, and without its file an older version, which may pass, would
be visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hudilake.format.definition.bucketing import Bucketing, bucket_or_none
from hudilake.format.files.view import FileSlice
from hudilake.metadata.records.delta import FileKey
from hudilake.read.filters.evaluate import Flags


@dataclass(frozen=True, eq=False)
class SliceFiles:
    """n file slices with their m files, slice after slice, the base file first."""

    slices: tuple[FileSlice, ...]

    @cached_property
    def files(self) -> tuple[FileKey, ...]:
        """The m files: partition path and bare name."""
        return tuple((s.partition_path, name) for s in self.slices for name in _names(s))

    @cached_property
    def owner(self) -> npt.NDArray[np.int64]:
        """For every file the number of its slice, int64 array of m."""
        counts = [(s.base_file is not None) + len(s.log_files) for s in self.slices]
        return np.repeat(np.arange(len(self.slices), dtype=np.int64), counts)

    @cached_property
    def in_log(self) -> Flags:
        """For every file whether it is a log file, bool array of m."""
        return np.array([name.startswith(".") for _, name in self.files], dtype=np.bool_)

    def buckets(self, bucketing: Bucketing) -> npt.NDArray[np.int64]:
        """For every slice its bucket, int64 array of n; -1 for file groups of no bucket."""
        numbers = (bucket_or_none(bucketing, piece.partition_path, piece.file_id) for piece in self.slices)
        return np.array([-1 if number is None else number for number in numbers], dtype=np.int64)

    def by_partition(self) -> dict[str, npt.NDArray[np.int64]]:
        """Partition path -> the numbers of its slices."""
        numbers_by_path: dict[str, list[int]] = {}
        for number, piece in enumerate(self.slices):
            numbers_by_path.setdefault(piece.partition_path, []).append(number)
        return {path: np.array(numbers, dtype=np.int64) for path, numbers in numbers_by_path.items()}

    def with_any(self, files: Flags) -> Flags:
        """The slices with at least one marked file, bool array of n."""
        return np.bincount(self.owner[files], minlength=len(self.slices)) > 0

    def files_of(self, slices: Flags) -> Flags:
        """The files of the marked slices, bool array of m."""
        return slices[self.owner]

    def chosen(self, slices: Flags) -> tuple[FileSlice, ...]:
        """The marked slices."""
        return tuple(self.slices[i] for i in np.flatnonzero(slices))


def _names(file_slice: FileSlice) -> Sequence[str]:
    base = file_slice.base_file
    logs = [str(log.name) for log in file_slice.log_files]
    return logs if base is None else [str(base.name), *logs]
