"""A side that is too large for its memory, cut into parts by the hash of its rows, in files of the local disk.

DuckDB spills, too, but fails where a hash table is about ten times its memory (measured, DuckDB 1.5.6). So what DuckDB
gets is small enough, and a part that is not is cut again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from hudilake.query.join.keys import HashedKey

#: Parts of one cut.
PARTS: Final = 16
#: Hashes are below 2**31; rows whose hashes agree in all of their digits cannot be cut.
_MOST = 1 << 31


@dataclass(frozen=True)
class HashedRows:
    """The rows of one side, for one pass.

    Args:
        schema: of every batch.
        key: their hashed columns.
        batches: the rows.
        divisor: the remainders of all their hashes by it are equal.
    """

    schema: pa.Schema
    key: HashedKey
    batches: Iterable[pa.RecordBatch]
    divisor: int

    @property
    def can_be_cut(self) -> bool:
        """Whether the hashes may differ in a further digit."""
        return self.divisor < _MOST

    def within(self, limit: int) -> tuple[HashedRows, bool]:
        """The same rows, and whether they have no more than ``limit`` bytes: then they are in memory."""
        kept, size, rest = [], 0, iter(self.batches)
        for batch in rest:
            kept.append(batch)
            size += batch.nbytes
            if size > limit:
                return replace(self, batches=chain(kept, rest)), False
        return replace(self, batches=kept), True

    def cut(self, place: Path) -> list[HashedRows]:
        """PARTS parts, each with the rows of one further digit of the hash.

        Args:
            place: the beginning of the names of their files, which are deleted when they have been read.
        """
        paths = [Path(f"{place}-{part}.arrow") for part in range(PARTS)]
        with ExitStack() as stack:
            writers = [stack.enter_context(pa.ipc.new_file(str(path), self.schema)) for path in paths]
            for batch in self.batches:
                digits = self.key.hashes(batch) // np.uint32(self.divisor) % np.uint32(PARTS)
                order = np.argsort(digits, kind="stable")
                ends = np.searchsorted(digits[order], np.arange(PARTS + 1))
                for part, writer in enumerate(writers):
                    if ends[part] < ends[part + 1]:
                        writer.write_batch(batch.take(pa.array(order[ends[part] : ends[part + 1]])))
        return [replace(self, batches=_read_once(path), divisor=self.divisor * PARTS) for path in paths]


def _read_once(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as file:
        for number in range(file.num_record_batches):
            yield file.get_batch(number)
    path.unlink()
