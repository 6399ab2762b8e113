"""Today's peers beside binlake, in events a second and in processor time. ``python -m bench.todays``.

``uniform``, ``zipf`` and ``load`` are ``catch-up`` with other laws of keys and in smaller batches. Writers take turns
and are checked as in ``python -m bench``. Peers on Spark 4.1 and libraries without Spark get their packages when they
are first measured. Writes ``results.md`` with a line for each writer's version.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.__main__ import facts, names_of
from bench.report import write_report
from bench.suite import PLAIN, Plan, Suite
from bench.todays.libraries import SINKS
from bench.todays.spark4 import PEERS_ON_SPARK_4
from bench.workloads import TODAYS
from embedded.kafka import EmbeddedKafka

WRITERS = ("binlake", "hudi", "delta", "paimon", *PEERS_ON_SPARK_4, *SINKS, "floor")
_RESULTS = Path(__file__).parents[1] / "results" / "todays"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what is missing, and write the report."""
    cache = Path(os.environ.get("BINLAKE_CACHE") or Path.home() / ".cache" / "binlake") / "bench"
    names = tuple(work.name for work in TODAYS)
    parser = argparse.ArgumentParser(prog="python -m bench.todays", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", type=names_of(names), default=list(names), help=", ".join(names))
    parser.add_argument("--writers", type=names_of(WRITERS), default=list(WRITERS), help=", ".join(WRITERS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="0.01 for a trial; no result")
    parser.add_argument("--results", type=Path, default=_RESULTS, help="runs that are in it are not made again")
    parser.add_argument("--work", type=Path, default=cache)
    given = parser.parse_args(argv)
    plan = Plan(given.only, given.writers, given.rounds, given.scale, given.results, given.work.absolute())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that broker and writer end with this program
    with contextlib.ExitStack() as held:
        bootstrap = ""
        if not set(plan.writers) <= set(PLAIN):
            broker = EmbeddedKafka(plan.work / "kafka", heap_mb=512, properties={"delete.topic.enable": "true"})
            bootstrap = held.enter_context(broker).bootstrap_servers
        suite = Suite(plan, bootstrap, facts())
        for work in TODAYS:
            if work.name in plan.workloads:
                suite.ingest(work.scaled(plan.scale))
    print(write_report(plan.log, plan.results, plan.scale, names))


if __name__ == "__main__":
    main()
