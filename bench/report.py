"""The report: all numbers as JSON, the important ones as tables and as a picture."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.plot import Bar, Panel, draw
from bench.suite import read_runs
from bench.summary import over_rounds
from bench.workloads import NAMES

Numbers = Mapping[str, Mapping[str, float]]
#: Column -> metric, and its number of digits. A column without values is left out.
_COLUMNS: dict[str, tuple[str, int]] = {
    "events/s": ("events_per_s", 0),
    "batch ms": ("batch_ms", 0),
    "p95 ms": ("batch_p95_ms", 0),
    "CPU s per million events": ("processor_s_per_million", 1),
    "visible p50 ms": ("visible_p50_ms", 0),
    "visible p99 ms": ("visible_p99_ms", 0),
    "peak memory MB": ("peak_pss_mb", 0),
    "bytes written per byte": ("bytes_per_byte", 2),
    "seconds": ("seconds", 2),
    "partition ms": ("partition_ms", 0),
    "range ms": ("range_ms", 0),
    "key ms": ("key_ms", 0),
}
#: The metric by which a workload is compared, and whether more of it is better.
_COMPARED: dict[str, tuple[str, bool]] = {
    "small": ("batch_ms", False),
    "old": ("batch_ms", False),
    "freshness": ("visible_p50_ms", False),
    "compaction": ("seconds", False),
    "reads": ("range_ms", False),
}

_UNITS = {"events_per_s": "events/s", "seconds": "s"}


def compared_by(workload: str) -> tuple[str, bool]:
    """The metric that counts, and whether more of it is better."""
    return _COMPARED.get(workload, ("events_per_s", True))


def times_as_good(workload: str, ours: Numbers, theirs: Numbers) -> float | None:
    """The ratio by which binlake's median is better, in the metric of the workload."""
    metric, more = compared_by(workload)
    if metric not in ours or metric not in theirs:
        return None
    mine, other = ours[metric]["median"], theirs[metric]["median"]
    return (mine / other if more else other / mine) if mine and other else None


def table(workload: str, writers: Mapping[str, Numbers]) -> str:
    """One workload as a markdown table: medians, with least and greatest of the rounds in parentheses."""
    shown = {c: m for c, m in _COLUMNS.items() if any(m[0] in numbers for numbers in writers.values())}
    lines = [f"| {workload} | rounds | {' | '.join(shown)} | binlake is |"]
    lines.append("| --- " * (len(shown) + 3) + "|")
    for writer, numbers in writers.items():
        cells = [_cell(numbers.get(metric), digits) for metric, digits in shown.values()]
        rounds = next(iter(numbers.values()))["rounds"]
        ratio = times_as_good(workload, writers["binlake"], numbers) if "binlake" in writers else None
        better = "" if writer == "binlake" or ratio is None else f"{ratio:.1f}x"
        lines.append(f"| {writer} | {rounds:.0f} | {' | '.join(cells)} | {better} |")
    return "\n".join(lines)


def overview(workloads: Mapping[str, Mapping[str, Numbers]]) -> str:
    """One line per workload: the median of each writer, and the ratio by which binlake is better."""
    writers = sorted(dict.fromkeys(w for numbers in workloads.values() for w in numbers), key="binlake".__ne__)
    lines = [f"| workload | {' | '.join(writers)} |", "| --- " * (len(writers) + 1) + "|"]
    for name, found in workloads.items():
        metric, _ = compared_by(name)
        cells = [_compared(name, found.get("binlake", {}), found.get(w, {}), w == "binlake") for w in writers]
        lines.append(f"| {name}, {_UNITS.get(metric, metric.replace('_', ' '))} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _compared(workload: str, ours: Numbers, theirs: Numbers, mine: bool) -> str:
    metric, _ = compared_by(workload)
    if metric not in theirs:
        return "-"
    value = theirs[metric]["median"]
    told, ratio = f"{value:,.{0 if value >= 100 else 1}f}", times_as_good(workload, ours, theirs)
    return f"**{told}**" if mine else told if ratio is None else f"{told} ({ratio:.1f}x)"


def _cell(value: Mapping[str, float] | None, digits: int) -> str:
    if value is None:
        return "-"
    median, least, most = (f"{value[k]:,.{digits}f}" for k in ("median", "min", "max"))
    return median if least == most else f"{median} ({least}-{most})"


def stages(writers: Mapping[str, Numbers]) -> str | None:
    """The time of binlake's batches by stage, as one line; None where it is unknown."""
    found = {k: v["median"] for k, v in writers.get("binlake", {}).items() if k.startswith("stage_")}
    told = ", ".join(f"{k.removeprefix('stage_').removesuffix('_ms')} {v:,.0f}" for k, v in found.items())
    return f"binlake's stages, ms a batch (see ``ProgressEvent.stage_ms``): {told}" if told else None


def panel(workload: str, writers: Mapping[str, Numbers]) -> Panel:
    """One workload of the picture."""
    metric, more = compared_by(workload)
    bars = [Bar(w, n[metric]["median"], n[metric]["min"], n[metric]["max"]) for w, n in writers.items() if metric in n]
    unit = _UNITS.get(metric, metric.replace("_", " "))
    return Panel(workload, f"{unit}, {'more' if more else 'less'} is better", bars)


def write_report(log: Path, results: Path, scale: float, names: Sequence[str] = NAMES) -> str:
    """Write ``results.json``, ``results.md`` and ``results.svg`` of the runs of one scale; returns the tables."""
    all_runs = [run for run in read_runs(log) if run["scale"] == scale]
    medians = over_rounds(all_runs)
    ordered = {name: medians[name] for name in names if name in medians}
    parts = [] if scale >= 1 else [f"A trial at scale {scale:g}: these are no results."]
    parts += [overview(ordered)] if ordered else []
    for name, writers in ordered.items():
        parts += [table(name, writers), *filter(None, [stages(writers)])]
    parts += _versions(all_runs) + _not_counted(all_runs)
    told = "\n\n".join(parts)
    results.mkdir(parents=True, exist_ok=True)
    facts = all_runs[-1]["facts"] if all_runs else {}
    (results / "results.json").write_text(json.dumps({"facts": facts, "scale": scale, "workloads": ordered}, indent=1))
    (results / "results.md").write_text(f"{told}\n\n{', '.join(f'{k} {v}' for k, v in facts.items())}\n")
    (results / "results.svg").write_text(draw([panel(name, writers) for name, writers in ordered.items()]))
    return told


def _versions(runs: Sequence[Mapping[str, object]]) -> list[str]:
    """What each writer was, by its last run."""
    found = {run["writer"]: run["version"] for run in runs if "version" in run}
    return ["Versions:\n" + "\n".join(f"- {writer}: {version}" for writer, version in found.items())] if found else []


def _not_counted(runs: Sequence[Mapping[str, object]]) -> list[str]:
    """Failures without a later successful run of the same round."""
    last = {(r["workload"], r["writer"], r["round"]): r["error"] for r in runs}
    bad = [f"- {w}, {who}, round {int(str(n)) + 1}: {error}" for (w, who, n), error in last.items() if error]
    return ["Runs that do not count:\n" + "\n".join(bad)] if bad else []
