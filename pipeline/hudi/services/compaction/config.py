"""When file groups are compacted, and how their base files are written."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import ConfigError
from pipeline.hudi.files.bloom import DYNAMIC, SIMPLE

_MIB = 1 << 20


@dataclass(frozen=True)
class CompactionConfig:
    """The settings of compaction. Of the three triggers the first that is met makes it due; None switches one off.

    Args:
        after_commits: delta commits since the last compaction was scheduled.
        after_minutes: age of the oldest of those.
        log_ratio: bytes of log files over bytes of the base files below them, counted for the whole table.
        log_ratio_from_bytes: log files smaller than this together do not count as a ratio.
        max_io_bytes: what one run may read and write, about; at least one file group is always taken.
        max_file_groups: how many file groups one run may take.
        row_group_rows, row_group_bytes: the most that a row group holds, in rows and in decoded bytes.
        compression, compression_level: of base files.
        bloom_kind: SIMPLE, sized to the rows; DYNAMIC_V0 as Hudi's writers make it; None for no bloom filter.
        bloom_fpp: its rate of false positives.
        bloom_entries, bloom_max_entries: how a dynamic one grows.
        tombstone_retention_hours: how long a delete keeps older events of its key out after it was compacted away.
    """

    after_commits: int | None = 10
    after_minutes: float | None = None
    log_ratio: float | None = None
    log_ratio_from_bytes: int = 16 * _MIB
    max_io_bytes: int | None = None
    max_file_groups: int | None = None
    row_group_rows: int = 250_000
    row_group_bytes: int = 64 * _MIB
    compression: str = "zstd"
    compression_level: int | None = 1
    bloom_kind: str | None = SIMPLE
    bloom_fpp: float = 1e-3
    bloom_entries: int = 60_000
    bloom_max_entries: int = 100_000
    tombstone_retention_hours: float = 0.0

    def __post_init__(self) -> None:
        positive = {
            "after_commits": self.after_commits,
            "after_minutes": self.after_minutes,
            "log_ratio": self.log_ratio,
            "max_io_bytes": self.max_io_bytes,
            "max_file_groups": self.max_file_groups,
            "row_group_rows": self.row_group_rows,
            "row_group_bytes": self.row_group_bytes,
            "bloom_entries": self.bloom_entries,
        }
        for name, value in positive.items():
            if value is not None and value <= 0:
                raise ConfigError(f"{name} must be greater than 0, and is {value}", do_next="fix the settings")
        if not 0 < self.bloom_fpp < 1 or self.bloom_kind not in (SIMPLE, DYNAMIC, None):
            raise ConfigError("bloom_fpp lies between 0 and 1, bloom_kind is SIMPLE, DYNAMIC_V0 or nothing")
        if self.tombstone_retention_hours < 0:
            raise ConfigError("tombstone_retention_hours cannot be negative", do_next="fix the settings")
