"""Offsets that were gone from Kafka and were passed over because that was asked for: the commits say which."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pipeline.source.ranges import OffsetRange

#: The commits' key: {"topic": {"0": [[first, end]]}}, ends exclusive.
SKIPPED = "binlake.skipped"
#: topic -> partition -> [first, end].
Skipped = dict[str, dict[int, list[list[int]]]]


def skipped_extra(
    skipped: Skipped, ranges: Sequence[OffsetRange], standing: Mapping[str, Mapping[int, int]]
) -> dict[str, str]:
    """For a commit: what was passed over between where its table stands and the end of its ranges."""
    found: dict[str, dict[str, list[list[int]]]] = {}
    for r in ranges:
        position = standing.get(r.topic, {}).get(r.partition, 0)
        gone = [[s, e] for s, e in skipped.get(r.topic, {}).get(r.partition, ()) if position < e <= r.end]
        if gone:
            found.setdefault(r.topic, {})[str(r.partition)] = gone
    return {SKIPPED: json.dumps(found, separators=(",", ":"))} if found else {}
