"""Writes the table of docs/support.md that says which lines of Spark and Python passed the short suite.

``python -m docs.support_lines`` writes it from what ``make test-lines`` recorded; a test compares the page.
"""

from __future__ import annotations

import re
from pathlib import Path

from binlake.stream.spark.lines import SPARK_LINES
from tests.line_results import LineRun, known_runs
from tests.paths import ROOT

PAGE = Path(__file__).with_name("support.md")
_BEGIN, _END = "<!-- lines: make docs writes this table -->\n", "<!-- end of lines -->\n"


def table() -> str:
    """A row for each supported line of Spark as it is locked, a column for each Python."""
    runs = {(run.spark, run.python): run for run in known_runs()}
    pythons = sorted({python for _, python in runs}, key=_numbers)
    lines = ["| Spark | " + " | ".join(f"Python {python}" for python in pythons) + " |"]
    lines += ["| --- |" + " --- |" * len(pythons)]
    for line, known in SPARK_LINES.items():
        spark = locked(line)
        words = [
            _word(runs.get((spark, python))) if _numbers(python) <= known.newest_python else "refused"
            for python in pythons
        ]
        lines.append(f"| {spark} | " + " | ".join(words) + " |")
    return "\n".join(lines) + "\n"


def locked(line: str) -> str:
    """The version of PySpark that the lock of a line has."""
    lock = ROOT / "requirements.lock" if line == "3.5" else ROOT / "lines" / f"spark-{line}.lock"
    (version,) = re.findall(r"^pyspark==(\S+)", lock.read_text(), re.MULTILINE)
    return str(version)


def _numbers(python: str) -> tuple[int, ...]:
    return tuple(map(int, python.split(".")))


def _word(run: LineRun | None) -> str:
    if run is None:
        return "not run"
    failed = f", failed: {', '.join(run.failed)}" if run.failed else ""
    return f"{run.passed} passed{failed}, {run.day}"


def page() -> str:
    """The page with the table in its place. Raises ValueError where the page has no place for it."""
    text, count = re.subn(
        f"{re.escape(_BEGIN)}.*{re.escape(_END)}", lambda _: _BEGIN + table() + _END, PAGE.read_text(), flags=re.DOTALL
    )
    if count != 1:
        raise ValueError(f"{PAGE.name} needs one pair of the two comments around the table")
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
