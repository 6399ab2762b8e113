"""``python -m bench``: binlake beside its peers, on this machine, in one run."""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pyarrow as pa
import pyspark

from bench.report import write_report
from bench.spec import HEAP_MB, MASTER
from bench.suite import WRITERS, Plan, Suite
from bench.workloads import NAMES
from embedded.kafka import EmbeddedKafka

_HERE = Path(__file__).parent


def facts() -> dict[str, Any]:
    """The facts that the numbers depend on."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        told = ["git", "-C", str(_HERE), "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(told, capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run(
            [*told[:3], "status", "--porcelain"], capture_output=True, text=True, check=True
        ).stdout
        return _machine() | {"commit": commit + ("+" if changed else "")}
    return _machine()


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "spark": pyspark.__version__,
        "pyarrow": pa.__version__,
        "master": MASTER,
        "heap_mb": HEAP_MB,
    }


def names_of(allowed: tuple[str, ...]) -> Any:  # noqa: ANN401 - a type for argparse
    """What reads names with commas between them from the command line, and refuses others than these."""

    def parse(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [n for n in names if n not in allowed]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(allowed)}")
        return names

    return parse


def main() -> None:
    """Measure what is missing, and write the report of all results."""
    cache = Path(os.environ.get("BINLAKE_CACHE") or Path.home() / ".cache" / "binlake") / "bench"
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--only", type=names_of(NAMES), default=list(NAMES), metavar="WORKLOAD,...", help=", ".join(NAMES)
    )
    parser.add_argument(
        "--writers", type=names_of(WRITERS), default=list(WRITERS), metavar="WRITER,...", help=", ".join(WRITERS)
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each writer does each workload (5)")
    parser.add_argument("--scale", type=float, default=1.0, help="0.01 for a trial that takes minutes; no result")
    parser.add_argument(
        "--results", type=Path, default=_HERE / "results", help="runs that are in it are not made again"
    )
    parser.add_argument("--work", type=Path, default=cache, help="broker, tables and logs of failed runs")
    parser.add_argument("--report", action="store_true", help="write the report of the runs there are; measure nothing")
    given = parser.parse_args()
    plan = Plan(given.only, given.writers, given.rounds, given.scale, given.results, given.work.absolute())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that broker and writer end with this program
    if not given.report:
        with EmbeddedKafka(plan.work / "kafka", heap_mb=512, properties={"delete.topic.enable": "true"}) as kafka:
            Suite(plan, kafka.bootstrap_servers, facts()).run()
    print(write_report(plan.log, plan.results, given.scale))


if __name__ == "__main__":
    main()
