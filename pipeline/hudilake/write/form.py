"""The form of the base files that a writer makes: codec, row groups and the filter of record keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import pyarrow as pa

from hudilake.format.files.parquet_file import Pages, ranged_columns
from hudilake.format.layout.order import Order

#: SIMPLE is sized to the rows; DYNAMIC_V0 grows, as Hudi's writers make it.
BloomKind: TypeAlias = Literal["SIMPLE", "DYNAMIC_V0"]

#: The rate of false positives of filters that are asked for a few keys at once.
USUAL_FPP: Final = 0.001
#: The same of filters that are asked for all new keys of a batch: 10,000 keys have one file of a hundred read in vain.
#: Lower rates make larger footers, which are read with the keys.
LOOKUP_FPP: Final = 1e-6
#: The most rows of a row group.
ROW_GROUP_ROWS: Final = 250_000
#: The same and the rows of a page where rows have an order, so that a range of values is in few of them. Measured on
#: 18 columns: with statistics of all of them the file is 1.3 % larger, and takes 11 % longer to encode. Files in key
#: order do without: there statistics made a compaction 2 to 4 % slower.
ORDERED_ROW_GROUP_ROWS: Final = 50_000
PAGE_ROWS: Final = 5_000


@dataclass(frozen=True, slots=True)
class BaseFileForm:
    """How base files are written.

    Args:
        row_group_rows: the most rows of a row group; None for 250,000, or 50,000 of rows in an order.
        row_group_bytes: the most decoded bytes of a row group, approximately.
        compression, compression_level: the codec.
        bloom_kind: of the filter of record keys; None for no filter.
        bloom_filter_fpp: its rate of false positives.
        bloom_entries, bloom_max_entries: how a dynamic one grows.
        order: of the rows in a file; None for that of the record keys.
    """

    row_group_rows: int | None = None
    row_group_bytes: int = 64 << 20
    compression: str = "zstd"
    compression_level: int | None = 1
    bloom_kind: BloomKind | None = "SIMPLE"
    bloom_filter_fpp: float = USUAL_FPP
    bloom_entries: int = 60_000
    bloom_max_entries: int = 100_000
    order: Order | None = None

    @property
    def at_once(self) -> tuple[int, int]:
        """The most rows, and about the most decoded bytes, of a row group."""
        usual = ROW_GROUP_ROWS if self.order is None else ORDERED_ROW_GROUP_ROWS
        return self.row_group_rows or usual, self.row_group_bytes

    def pages(self, schema: pa.Schema) -> Pages | None:
        """What readers skip parts of a file by, besides record keys; None where rows have no order.

        Args:
            schema: of the rows.
        """
        if self.order is None:
            return None
        return Pages(ranged_columns(schema), min(PAGE_ROWS, self.at_once[0]))
