"""``make soak``: ingest, compaction, cleaning and archival for as long as asked, killed at random and checked.

Ends with exit code 1 at the first check that fails: what, where, the seed, and the directory, which is kept.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

from embedded.kafka import EmbeddedKafka
from hudilake.errors import LakeError
from tests.judges.hudi_spark import HudiSpark
from tests.programs.soak.latency import lines
from tests.programs.soak.soak import Options, Soak, SoakFailed
from tests.spark_session import start_session


def main() -> int:
    """Run one soak; the exit code."""
    given = _arguments().parse_args()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1 << 32)
    commits_only = given.commits is not None and given.minutes is None
    options = Options(
        seed=seed,
        seconds=None if commits_only else 60 * (given.minutes or 10),
        commits=given.commits,
        kill_every_s=None if given.no_kills else given.kill_every,
        leg_s=given.leg,
        spark_every=given.spark_every,
        per_second=given.rate,
        trigger_ms=given.trigger_ms,
        compactor=given.compactor,
    )
    directory = Path(given.directory or tempfile.mkdtemp(prefix="binlake-soak-")).absolute()
    directory.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}, in {directory}", flush=True)
    judges = given.judges.split(",") if given.judges else []
    with EmbeddedKafka(directory / "kafka") as broker:
        spark = cache(lambda: HudiSpark(start_session(directory / "warehouse"))) if "hudi-spark" in judges else None
        soak = Soak(options, directory, broker.bootstrap_servers, "soak", spark, lambda line: print(line, flush=True))
        try:
            report = soak.run()
        except SoakFailed as failure:
            print(f"FAILED: {failure}", flush=True)
            return 1
        finally:
            with contextlib.suppress(LakeError):  # of a table that is damaged nothing can be told
                _write(directory, given.report, soak)
    print("\n".join(lines(report["latency"])))
    print(
        f"the soak is over: {report['commits']} commits, {report['kills']} kills, {report['checks']} checks, all right"
    )
    if given.directory is None:
        shutil.rmtree(directory)
    return 0


def _write(directory: Path, place: str | None, soak: Soak) -> None:
    """The report as JSON, of a failed soak too."""
    path = Path(place) if place else directory / "report.json"
    path.write_text(json.dumps(soak.report(), indent=1))


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.programs.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, help="of streaming; 10 where --commits is not given")
    parser.add_argument("--commits", type=int, help="end after so many committing batches")
    parser.add_argument("--seed", type=int, help="of events and kills; by default a new one, which is printed")
    parser.add_argument("--no-kills", action="store_true")
    parser.add_argument("--kill-every", type=float, default=20, help="mean seconds between two kills")
    parser.add_argument("--leg", type=float, default=60, help="seconds between two checks")
    parser.add_argument("--judges", default="hudi-rs,hudi-spark", help="hudi-rs is always asked")
    parser.add_argument(
        "--spark-every", type=int, default=4, help="Hudi Spark is asked at every n-th check, and at the end"
    )
    parser.add_argument("--compactor", choices=("async", "inline", "process"), default="async")
    parser.add_argument("--rate", type=float, default=150, help="changes a second")
    parser.add_argument("--trigger-ms", type=int, default=100)
    parser.add_argument("--directory", help="keep all of it here; by default a temporary one, kept after a failure")
    parser.add_argument("--report", help="where the report goes, JSON; by default report.json in the directory")
    return parser


if __name__ == "__main__":
    sys.exit(main())
