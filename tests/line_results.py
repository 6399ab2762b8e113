"""Records which tests of the short suite passed on which Spark and Python: ``lines/results.json``.

``python -m tests.line_results JUNIT`` adds a run, in the environment that the tests ran in; a former run on the same
versions is replaced. ``make docs`` makes the table in docs/support.md of it.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from hudilake.clock import now_ms
from tests.paths import ROOT

RESULTS = ROOT / "lines" / "results.json"


@dataclass(frozen=True, slots=True)
class LineRun:
    """A run of the short suite.

    Args:
        spark: the version of PySpark.
        python: the line of Python.
        passed: how many tests passed.
        failed: the names of those that did not.
        day: of the run, UTC: it says of which code it tells.
    """

    spark: str
    python: str
    passed: int
    failed: Sequence[str] = ()
    day: str = ""

    @property
    def line(self) -> str:
        """The line of Spark."""
        return self.spark.rpartition(".")[0]


def known_runs() -> list[LineRun]:
    """All runs that are recorded, by version."""
    if not RESULTS.exists():
        return []
    return [LineRun(**run) for run in json.loads(RESULTS.read_text())]


def run_of(junit: Path) -> LineRun:
    """The run that a JUnit file of pytest tells of, on this Spark and Python. Raises ValueError if no test ran."""
    cases = list(ElementTree.parse(junit).getroot().iter("testcase"))
    if not cases:
        raise ValueError(f"{junit}: no test ran")
    failed = [str(case.get("name")) for case in cases if len(case) and case[0].tag in ("failure", "error", "skipped")]
    python = ".".join(platform.python_version_tuple()[:2])
    day = datetime.fromtimestamp(now_ms() / 1000, UTC).date().isoformat()
    return LineRun(importlib.metadata.version("pyspark"), python, len(cases) - len(failed), failed, day)


def record(run: LineRun) -> None:
    """Write a run in the place of a former one on the same versions."""
    others = [known for known in known_runs() if (known.line, known.python) != (run.line, run.python)]
    runs = sorted([*others, run], key=lambda r: ([*map(int, r.spark.split("."))], int(r.python.split(".")[1])))
    RESULTS.write_text("[\n" + ",\n".join(f"  {json.dumps(asdict(r))}" for r in runs) + "\n]\n")


if __name__ == "__main__":
    record(run_of(Path(sys.argv[1])))
