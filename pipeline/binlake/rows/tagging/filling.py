"""Which file group takes new rows: small files are filled up, further rows begin new file groups.

New keys are in base files only, so that indexes see them. In a table with log files a file group that has them is not
filled: its base file is rewritten by compaction alone (as Hudi Spark 1.2.0 does, measured).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.tagging.events import KeyEvents
from binlake.rows.upsert.collapse import Int64s
from hudilake.format.definition.new_file_id import new_file_id
from hudilake.format.files.names import parse_base_name
from hudilake.format.files.view import FileSlice
from hudilake.format.timeline.timeline import Timeline
from hudilake.policies import FileSizePolicy

#: The size of a stored row is that of the newest base files: of so many commits at most, until they have so many rows.
_MOST_COMMITS, _ENOUGH_ROWS = 20, 1_000_000
#: A file of fewer rows says little: its footer and its filter of record keys weigh too much.
_LEAST_ROWS = 10_000
#: Bytes in memory for one byte in a file, for a table without base files.
_DENSITY = 2


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A file group that takes further rows: its file id, the bytes of its base file, and whether the commit rewrites
    the base file anyway."""

    file_id: str
    size: int
    rewritten: bool = False


@dataclass(frozen=True, slots=True)
class FileGroupFill:
    """Rows for one file group: partition path, file id, the indexes of the rows, whether the file group is new."""

    partition_path: str
    file_id: str
    rows: Int64s
    is_new: bool


@dataclass(frozen=True, slots=True)
class InsertDistribution:
    """How new rows are distributed.

    Args:
        table_name: of the table.
        instant: of the commit; new file ids follow from it.
        sizes: of base files.
        row_bytes: of a stored row, on average; > 0.
    """

    table_name: str
    instant: str
    sizes: FileSizePolicy
    row_bytes: float

    def chunks(self, inserts: KeyEvents, small: Mapping[str, Sequence[SmallFile]]) -> list[FileGroupFill]:
        """The file groups of n new rows; the rows of a partition go to its file groups in key order.

        Args:
            inserts: of distinct rows.
            small: by partition path, the file groups that take rows.
        """
        codes = np.asarray(inserts.paths.indices.to_numpy(), dtype=np.int64)
        chunks: list[FileGroupFill] = []
        for code, path in enumerate(inserts.paths.dictionary.to_pylist()):
            rows = np.flatnonzero(codes == code)
            if len(rows):
                chunks += self._of_partition(path, rows, inserts.keys, small.get(path, ()))
        return chunks

    def _of_partition(self, path: str, rows: Int64s, keys: pa.Array, small: Sequence[SmallFile]) -> list[FileGroupFill]:
        counts = [(file.file_id, self._room(file)) for file in sorted(small, key=_first)]
        counts = [(file_id, room) for file_id, room in counts if room > 0]
        left = len(rows) - sum(room for _, room in counts)
        new = self._new_sizes(max(left, 0))
        if len(counts) + len(new) > 1:
            rows = rows[np.asarray(pc.sort_indices(keys.take(pa.array(rows))).to_numpy(), dtype=np.int64)]
        chunks, offset = list[FileGroupFill](), 0
        for file_id, room in counts:
            if offset < len(rows):
                chunks.append(FileGroupFill(path, file_id, rows[offset : offset + room], is_new=False))
                offset += room
        for number, count in enumerate(new):
            file_id = new_file_id(self.table_name, self.instant, path, str(number))
            chunks.append(FileGroupFill(path, file_id, rows[offset : offset + count], is_new=True))
            offset += count
        return chunks

    def _room(self, file: SmallFile) -> int:
        """How many rows a file takes until it is full."""
        return int((self.sizes.target_bytes - file.size) / self.row_bytes)

    def _new_sizes(self, rows: int) -> list[int]:
        """The numbers of rows of new file groups, as even as can be."""
        most = max(1, int(self.sizes.target_bytes / self.row_bytes))
        groups = -(-rows // most)
        return [rows * (number + 1) // groups - rows * number // groups for number in range(groups)]


def _first(file: SmallFile) -> tuple[bool, int, str]:
    """Files that are rewritten anyway come first, then those that cost least to rewrite."""
    return not file.rewritten, file.size, file.file_id


def small_files(
    slices: Iterable[FileSlice], sizes: FileSizePolicy, touched: Collection[str], *, rewrites: bool
) -> dict[str, list[SmallFile]]:
    """The file groups that take new rows, by partition path.

    Args:
        slices: the newest file slice of every file group.
        sizes: of base files.
        touched: file ids of the file groups that the commit changes.
        rewrites: whether changes rewrite base files.
    """
    files_by_path: dict[str, list[SmallFile]] = {}
    for piece in slices:
        if piece.base_file is not None and not piece.log_files and piece.base_size < sizes.small_bytes:
            file = SmallFile(piece.file_id, piece.base_size, rewrites and piece.file_id in touched)
            files_by_path.setdefault(piece.partition_path, []).append(file)
    return files_by_path


def stored_row_bytes(timeline: Timeline) -> float | None:
    """The bytes of a row in the newest base files that are not tiny, by the commits that wrote them; None for none.
    Raises CorruptDataError, StorageError."""
    rows = size = 0
    for instant in timeline.completed()[: -_MOST_COMMITS - 1 : -1]:
        for stat in timeline.commit_metadata(instant).stats:
            if stat.num_writes >= _LEAST_ROWS and parse_base_name(stat.file_name) is not None:
                rows, size = rows + stat.num_writes, size + stat.file_size
        if rows >= _ENOUGH_ROWS:
            break
    return size / rows if size else None


def row_bytes(timeline: Timeline, inserts: KeyEvents) -> float:
    """The expected bytes of a stored row, > 0: as in the newest base files, or by the rows in memory. Errors as
    ``stored_row_bytes``."""
    known = stored_row_bytes(timeline)
    return known or max(1.0, inserts.rows.nbytes / max(1, len(inserts)) / _DENSITY)
