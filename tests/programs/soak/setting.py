"""The settings of the stream under the soak: small bounds, so that everything happens often."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from embedded.jars import small_spark

Compactor = Literal["async", "inline", "process"]


@dataclass(frozen=True)
class Bounds:
    """When upkeep happens, in commits of a table."""

    compact_after: int = 12
    retained: int = 15

    @property
    def most_instants(self) -> int:
        """The most active commits: what is kept, what is archived at once, and what the metadata table's compaction and
        a pending one hold back meanwhile."""
        return max(self.compact_after, self.retained) + 20 + 50 + 40


def document(
    directory: Path, prefix: str, servers: str, topics: list[str], compactor: Compactor, bounds: Bounds, trigger_ms: int
) -> dict[str, Any]:
    """The settings file: three tables, their lake below ``directory``."""
    compaction = {
        "mode": compactor,
        "after_commits": bounds.compact_after,
        "log_ratio": None,
        # Short, so that what is kept of deletes stops growing; far above what comes late (source.LATE_S).
        "tombstone_retention_hours": 0.1,
    }
    return {
        "name": prefix,
        "lake": {"uri": str(directory / "lake"), "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": servers, "topics": topics, "ddl_topics": [prefix]},
        "tables": {
            "defaults": {"buckets": 2, "compaction": compaction, "retention": {"commits": bounds.retained}},
            # Rows move between these partitions whenever an account's tier changes.
            "overrides": [{"match": "live.accounts", "partition": {"column": "tier"}}],
        },
        "batch": {"max_events": 20_000, "trigger_interval_ms": trigger_ms},
        "spark": small_spark(),
    }


def write(path: Path, settings: dict[str, Any]) -> Path:
    """Put the settings down; YAML takes JSON."""
    path.write_text(json.dumps(settings, indent=1))
    return path
