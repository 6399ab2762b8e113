"""When file groups are compacted, and how their base files are written."""

from __future__ import annotations

from pydantic import ConfigDict

from hudilake.format.definition.format_config import FormatConfig
from hudilake.format.layout.order import Order
from hudilake.policies import CompactionPolicy
from hudilake.validation import Count
from hudilake.write.form import USUAL_FPP, BaseFileForm, BloomKind
from hudilake.write.retention import RowRetention


class CompactionConfig(CompactionPolicy, FormatConfig):
    """The settings of compaction: the policy, and what no settings file gives for it.

    Args:
        log_ratio_from_bytes: log files smaller than this together do not count as a ratio.
        compression, compression_level: of base files.
        bloom_kind: SIMPLE, sized to the rows; DYNAMIC_V0 as Hudi's writers make it; None for no bloom filter.
        bloom_entries, bloom_max_entries: how a dynamic one grows.
        row_retention: which live rows stay; None for all.
        erased_keys: record keys whose deletes are not stated again (``services.erasure``).
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    log_ratio_from_bytes: int = 16 << 20
    compression: str = "zstd"
    compression_level: int | None = 1
    bloom_kind: BloomKind | None = "SIMPLE"
    bloom_entries: Count = 60_000
    bloom_max_entries: int = 100_000
    row_retention: RowRetention | None = None
    erased_keys: frozenset[str] = frozenset()

    @property
    def form(self) -> BaseFileForm:
        """The form of its base files."""
        return BaseFileForm(
            self.row_group_rows,
            self.row_group_bytes,
            self.compression,
            self.compression_level,
            self.bloom_kind,
            self.bloom_filter_fpp or USUAL_FPP,
            self.bloom_entries,
            self.bloom_max_entries,
            Order(self.order_by) if self.order_by is not None else None,
        )
