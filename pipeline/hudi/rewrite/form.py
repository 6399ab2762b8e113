"""The form of the base files that a writer makes: codec, row groups and the filter of record keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pipeline.hudi.layout.order import Order

#: SIMPLE is sized to the rows; DYNAMIC_V0 grows, as Hudi's writers make it.
BloomKind: TypeAlias = Literal["SIMPLE", "DYNAMIC_V0"]

#: The rate of false positives of filters that are asked for a few keys at once.
USUAL_FPP: Final = 0.001
#: The same of filters that are asked for all new keys of a batch: 10,000 keys have one file of a hundred read in vain.
#: Lower rates make larger footers, which are read with the keys.
LOOKUP_FPP: Final = 1e-6


@dataclass(frozen=True, slots=True)
class BaseFileForm:
    """How base files are written.

    Args:
        row_group_rows: the most rows of a row group.
        row_group_bytes: the most decoded bytes of a row group, approximately.
        compression, compression_level: the codec.
        bloom_kind: of the filter of record keys; None for no filter.
        bloom_filter_fpp: its rate of false positives.
        bloom_entries, bloom_max_entries: how a dynamic one grows.
        order: of the rows in a file; None for that of the record keys.
    """

    row_group_rows: int = 250_000
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
        return self.row_group_rows, self.row_group_bytes
