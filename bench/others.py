"""The workloads that are programs of their own, each run in a process of its own: compaction, and filtered reads."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from bench import compaction, reads
from bench.process import WorkerFailed
from bench.spec import HEAP_MB
from bench.summary import Metrics

SIDES = {"compaction": ("binlake", "hudi"), "reads": ("binlake", "hudi", "hudi-rs")}


def run(name: str, place: Path, rounds: int, scale: float) -> dict[str, list[Metrics]]:
    """Side -> the numbers of each round. Raises WorkerFailed. A round with two different sides is a failure."""
    place.mkdir(parents=True)
    out, log = place / "found.json", place / "log.txt"
    command = [sys.executable, "-m", "bench.others", name, str(place / "data"), str(rounds), str(scale), str(out)]
    with log.open("wb") as words:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=words, stderr=words, check=False).returncode
    if code:
        raise WorkerFailed(f"exit code {code}: {log.read_text(errors='replace')[-800:]}")
    found: dict[str, list[Metrics]] = json.loads(out.read_text())
    return found


def _compaction(place: Path, rounds: int, scale: float) -> dict[str, list[Metrics]]:
    sizes = compaction.Sizes(max(2_000, round(1_000_000 * scale)), max(400, round(100_000 * scale)), 12, metadata=True)
    spent = compaction.measure(place, sizes, rounds, HEAP_MB)
    sides = {"binlake": spent["binlake"], "hudi": spent["Hudi Spark"]}
    return {side: [{"seconds": value} for value in values] for side, values in sides.items()}


def main() -> None:
    """Measure one workload and write its results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(SIDES))
    parser.add_argument("place", type=Path)
    parser.add_argument("rounds", type=int)
    parser.add_argument("scale", type=float)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    measure = {"compaction": _compaction, "reads": reads.measure}[given.name]
    given.place.mkdir(parents=True)
    given.out.write_text(json.dumps(measure(given.place, given.rounds, given.scale)))


if __name__ == "__main__":
    main()
