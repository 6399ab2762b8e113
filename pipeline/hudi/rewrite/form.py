"""The form of the base files that a writer makes: codec, row groups and the filter of record keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

#: SIMPLE is sized to the rows; DYNAMIC_V0 grows, as Hudi's writers make it.
BloomKind: TypeAlias = Literal["SIMPLE", "DYNAMIC_V0"]


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
    """

    row_group_rows: int = 250_000
    row_group_bytes: int = 64 << 20
    compression: str = "zstd"
    compression_level: int | None = 1
    bloom_kind: BloomKind | None = "SIMPLE"
    bloom_filter_fpp: float = 0.001
    bloom_entries: int = 60_000
    bloom_max_entries: int = 100_000
