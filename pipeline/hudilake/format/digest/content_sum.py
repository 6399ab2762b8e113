"""What a file shall hold: the number of its rows and deletes, and the sum of their digests.

A writer computes it from the rows, before they are encoded, and records it in its commit; who reads the file computes
it again. Sums add up: of a base file that is written anew, the sum is that of the old file, less the rows that the
commit takes away, and the rows that it adds. So the rows that a writer only copies are not digested again, and what was
wrong in the old file differs in the new one too.

All columns count but three meta fields: the partition path and the file's name, which readers take from the file
itself, and the sequence number, which no reader needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.digest.rows import Digests, columns_of, row_digests

#: The key of a commit's extra metadata, and of a base file's footer, that has the sums.
CONTENTS_KEY: Final = "binlake.contents"
_WORD = 1 << 64
_NOT_COUNTED: Final = frozenset({"_hoodie_partition_path", "_hoodie_file_name", "_hoodie_commit_seqno"})
#: From this share of the rows on it is quicker to digest all than to gather some.
_SHARE: Final = 4


@dataclass(frozen=True, slots=True)
class ContentSum:
    """``rows``: rows, partial rows and deletes. ``low``, ``high``: the sums of the halves of their digests, modulo
    2**64."""

    rows: int = 0
    low: int = 0
    high: int = 0

    def __add__(self, other: ContentSum) -> ContentSum:
        return ContentSum(self.rows + other.rows, (self.low + other.low) % _WORD, (self.high + other.high) % _WORD)

    def __sub__(self, other: ContentSum) -> ContentSum:
        return ContentSum(self.rows - other.rows, (self.low - other.low) % _WORD, (self.high - other.high) % _WORD)

    def __str__(self) -> str:
        return f"{self.rows}-{self.high:016x}{self.low:016x}"

    @staticmethod
    def parse(text: str) -> ContentSum:
        """The sum of its text. Raises ValueError."""
        rows, dash, digits = text.partition("-")
        if not (rows.isdecimal() and dash and len(digits) == 32):
            raise ValueError(f"{text[:80]!r} is no sum of contents")
        return ContentSum(int(rows), int(digits[16:], 16), int(digits[:16], 16))

    @staticmethod
    def of_digests(digests: Digests) -> ContentSum:
        """The sum of n digests."""
        low, high = (int(half.sum(dtype=np.uint64)) for half in (digests.low, digests.high))
        return ContentSum(len(digests.low), low, high)

    @staticmethod
    def of_rows(rows: pa.Table) -> ContentSum:
        """The sum of whole rows, with the columns of a file. Errors as ``row_digests``."""
        return ContentSum.of_digests(_whole(rows))

    @staticmethod
    def of_some(rows: pa.Table, places: npt.NDArray[np.int64]) -> ContentSum:
        """The sum of the whole rows at these indexes. Errors as ``row_digests``."""
        if not len(places):
            return NOTHING
        if len(places) * _SHARE >= rows.num_rows:
            return ContentSum.of_digests(_whole(rows).take(places))
        return ContentSum.of_rows(rows.take(pa.array(places)))

    @staticmethod
    def of_partials(rows: pa.Table) -> ContentSum:
        """The sum of partial rows: which columns they have counts. Errors as ``row_digests``."""
        columns = dict(columns_of(rows, _NOT_COUNTED))
        return ContentSum.of_digests(row_digests(columns, rows.num_rows, f"partial {sorted(columns)}"))

    @staticmethod
    def of_deletes(keys: pa.Array | pa.ChunkedArray, ordering: pa.Array | pa.ChunkedArray | None) -> ContentSum:
        """The sum of deletes. ``keys``: text. ``ordering``: int64; null, or None, for those that are unconditional."""
        columns = {RECORD_KEY_FIELD: keys}
        if ordering is not None:
            columns["ordering"] = ordering.cast(pa.int64())
        return ContentSum.of_digests(row_digests(columns, len(keys), "delete"))


NOTHING: Final = ContentSum()


def total(sums: Iterable[ContentSum]) -> ContentSum:
    """The sum of several parts."""
    return sum(sums, NOTHING)


def _whole(rows: pa.Table) -> Digests:
    return row_digests(dict(columns_of(rows, _NOT_COUNTED)), rows.num_rows)
