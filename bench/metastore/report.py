"""The figures of both metastores as a table in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.metastore.beside import spread


def report(document: Mapping[str, Any]) -> str:
    """The page."""
    sizes = document["sizes"]
    lines = [
        "# The metastore beside a Hive Metastore 3.1.3",
        "",
        f"{sizes['partitions']:,} partitions of one table, {sizes['rounds']} rounds, the sides in turns; median "
        "(least to greatest) of the rounds. Both keep their data in one MariaDB; the Hive Metastore uses direct SQL.",
        "Answers are read to the last byte and not decoded.",
        "",
        "| measurement | Hive Metastore | binlake | times as good |",
        "| --- | --- | --- | --- |",
    ]
    for name, found in document["rounds"].items():
        lines.append(f"| {name} | {_shown(found['hms'])} | {_shown(found['binlake'])} | {_times(name, found):.1f} |")
    if any(name.startswith("HiveSync") for name in document["rounds"]):
        lines.append(f"| {_registering(document['rounds'])} |")
    return "\n".join(lines) + "\n"


def _registering(rounds: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Binlake's own registration beside HiveSync with the Hive Metastore."""
    sync = next(found for name, found in rounds.items() if name.startswith("HiveSync"))["hms"]
    own = next(found for name, found in rounds.items() if name.startswith("add_partitions_req"))["binlake"]
    times = spread(own)[0] / spread(sync)[0]
    name = "HiveSync to the Hive Metastore beside add_partitions_req to binlake: partitions a second"
    return f"{name} | {_shown(sync)} | {_shown(own)} | {times:.1f}"


def _shown(values: Sequence[float]) -> str:
    middle, least, most = (f"{value:,.{0 if value >= 100 else 2}f}" for value in spread(values))
    return f"{middle} ({least} to {most})"


def _times(name: str, found: Mapping[str, Sequence[float]]) -> float:
    ours, peer = (spread(found[side])[0] for side in ("binlake", "hms"))
    return ours / peer if "a second" in name.partition(": ")[2] else peer / ours
