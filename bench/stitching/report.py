"""The results as a page: ``bench/results/stitching.md``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_STREAMS: dict[str, tuple[str, int]] = {
    "events/s": ("events_per_s", 0),
    "batch ms": ("batch_ms", 0),
    "batch of 500 ms": ("small_batch_ms", 0),
    "written MB": ("written_mb", 1),
    "compaction s": ("compaction_s", 1),
    "compaction MB": ("compaction_mb", 1),
    "wrong rows": ("wrong_rows", 0),
    "after compaction": ("wrong_rows_compacted", 0),
}
_COLUMN: dict[str, tuple[str, int]] = {
    "table MB": ("table_mb", 1),
    "written MB": ("written_mb", 1),
    "of the table %": ("written_percent", 1),
    "seconds": ("seconds", 1),
}


def write_report(results: Path) -> None:
    """Write the page beside the results."""
    known: dict[str, Any] = json.loads(results.read_text())
    streams = {side: run for side, run in known.items() if "events" in run["sizes"]}
    columns = {side: run for side, run in known.items() if "rows" in run["sizes"]}
    lines = ["# Two streams into one table", "", *_table(streams, _STREAMS), ""]
    lines += ["# A column for all rows of a table of 100 columns", "", *_table(columns, _COLUMN), ""]
    lines += ["Load of the machine while each was measured: "]
    lines[-1] += ", ".join(f"{side} {run['facts']['load']}" for side, run in sorted(known.items())) + "."
    results.with_suffix(".md").write_text("\n".join(lines) + "\n")


def _table(runs: Mapping[str, Any], columns: Mapping[str, tuple[str, int]]) -> Sequence[str]:
    lines = [f"| | {' | '.join(columns)} |", f"| --- {'| --- ' * len(columns)}|"]
    for side, run in sorted(runs.items()):
        cells = [f"{run['numbers'][name]:,.{digits}f}" for name, digits in columns.values()]
        lines.append(f"| {side} | {' | '.join(cells)} |")
    return lines
