"""What the metadata table keeps, and how often it tidies up."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from hudilake.format.definition.format_config import FormatConfig
from hudilake.format.files.bloom import DEFAULT_FPP
from hudilake.policies import MetadataPolicy
from hudilake.validation import Count, mistake


class MetadataConfig(MetadataPolicy, FormatConfig):
    """Settings of one table's metadata table: the policy, and what no settings file gives.

    Args:
        bloom_fpp: the bloom filters' false positive rate.
        compact_after: delta commits before the metadata table is compacted, at the earliest.
        compact_at_most: delta commits after which it is compacted whatever its size.
        compact_ratio: between the two, it is compacted once its log files have this share of its base files' bytes, so
            that the work stays in proportion to what was added.
        versions_kept: file slices kept for readers that still use an older one.
        archive_after, archive_keep: the active timeline is cut to ``archive_keep`` instants once it holds
            ``archive_after``.
    """

    bloom_fpp: float = Field(default=DEFAULT_FPP, gt=0, lt=1)
    compact_after: Count = 16
    compact_at_most: int = 64
    compact_ratio: float = 0.5
    versions_kept: Count = 2
    archive_after: int = 40
    archive_keep: Count = 20

    @model_validator(mode="after")
    def _limits_agree(self) -> Self:
        if self.compact_after > self.compact_at_most or self.archive_keep >= self.archive_after:
            raise mistake("compaction or archival limits contradict each other")
        return self
