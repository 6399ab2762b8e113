"""The results of layouts as a table in Markdown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.layouts.questions import COLUMNS
from bench.layouts.run import Found


def keep(path: Path, found: Found) -> None:
    """Add a layout to the results, in place of an earlier measurement of it."""
    known = [line for line in _lines(path) if not _same(json.loads(line), found)]
    path.write_text("".join(f"{line}\n" for line in [*known, found.to_json()]))


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _same(line: dict[str, Any], found: Found) -> bool:
    return bool((line["side"], line["layout"]) == (found.side, found.layout))


def write_report(path: Path) -> None:
    """``<results>.md`` beside the results."""
    runs = [json.loads(line) for line in _lines(path)]
    if not runs:
        return
    kinds = list(runs[0]["read"])
    text = [
        f"{runs[0]['sizes']['rows']:,} rows; order by {', '.join(COLUMNS)}. Files that a query reads on average.",
        "",
        f"| side | layout | seconds | files | row groups | {' | '.join(kinds)} | all |",
        f"| --- | --- | --- | --- | --- |{' --- |' * (len(kinds) + 1)}",
        *(_row(run, kinds, "files") for run in runs),
        "",
        "Share of the rows whose row groups are read, in percent.",
        "",
        f"| side | layout | {' | '.join(kinds)} | all |",
        f"| --- | --- |{' --- |' * (len(kinds) + 1)}",
        *(_share(run, kinds) for run in runs),
        "",
        *_beside(runs, kinds),
    ]
    path.with_suffix(".md").write_text("\n".join(text))


def _row(run: dict[str, Any], kinds: Sequence[str], what: str) -> str:
    cells = [run["read"][kind][what] for kind in kinds]
    shown = " | ".join(f"{cell:.1f}" for cell in [*cells, sum(cells) / len(cells)])
    seconds = f"{run['seconds']:.1f}" if run["seconds"] else ""
    return f"| {run['side']} | {run['layout']} | {seconds} | {run['files']} | {run['row_groups']} | {shown} |"


def _share(run: dict[str, Any], kinds: Sequence[str]) -> str:
    cells = [100 * run["read"][kind]["rows"] / run["sizes"]["rows"] for kind in kinds]
    shown = " | ".join(f"{cell:.1f}" for cell in [*cells, sum(cells) / len(cells)])
    return f"| {run['side']} | {run['layout']} | {shown} |"


def _beside(runs: Sequence[dict[str, Any]], kinds: Sequence[str]) -> list[str]:
    """Each layout of a peer beside ours of the same name."""
    ours = {run["layout"]: run for run in runs if run["side"] == "binlake"}
    pairs = [(run, ours[run["layout"]]) for run in runs if run["side"] != "binlake" and run["layout"] in ours]
    lines = []
    for peer, own in pairs:
        if not peer["seconds"]:
            continue
        total = [sum(run["read"][kind]["files"] for kind in kinds) for run in (peer, own)]
        more = [kind for kind in kinds if own["read"][kind]["files"] > peer["read"][kind]["files"]]
        lines.append(
            f"| {peer['side']} {peer['layout']} | {peer['seconds'] / own['seconds']:.1f} | {total[0] / total[1]:.2f} "
            f"| {', '.join(more) or 'none'} |"
        )
    if not lines:
        return []
    head = "| peer, beside binlake's layout of that name | seconds, times | files, times | binlake reads more for |"
    return [head, "| --- | --- | --- | --- |", *lines, ""]
