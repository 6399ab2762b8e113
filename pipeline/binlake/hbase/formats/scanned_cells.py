"""The cells of records of an exported scan, column by column, before they are checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True)
class ScannedCells:
    """n cells of scanned rows, record by record.

    Attributes:
        at: the index of each cell's record, int64, ascending.
        rows, families, qualifiers, values: binary, n each.
        timestamps: int64, n.
        kinds: string, n; ``CellKind``, or any other text.
    """

    at: npt.NDArray[np.int64]
    rows: pa.Array
    families: pa.Array
    qualifiers: pa.Array
    timestamps: npt.NDArray[np.int64]
    kinds: pa.Array
    values: pa.Array

    def __len__(self) -> int:
        return len(self.at)

    def without(self, records: Sequence[int]) -> ScannedCells:
        """The cells of all other records."""
        kept = ~np.isin(self.at, records)
        mask = pa.array(kept)
        return ScannedCells(
            self.at[kept],
            self.rows.filter(mask),
            self.families.filter(mask),
            self.qualifiers.filter(mask),
            self.timestamps[kept],
            self.kinds.filter(mask),
            self.values.filter(mask),
        )

    def numbers(self) -> npt.NDArray[np.int32]:
        """The number of each cell in its record, int32, n: 0 for the last one. Of several cells with one key a scan
        names the newest first, and of one order the highest number wins."""
        ends = np.searchsorted(self.at, self.at, side="right")
        return (ends - 1 - np.arange(len(self.at))).astype(np.int32)
