"""docs/support.md, the package's bounds and what was run must say the same."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from binlake.stream.spark.lines import SPARK_LINES
from docs import support_lines
from docs.support_lines import locked
from tests import line_results
from tests.line_results import LineRun, known_runs, record, run_of
from tests.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_CLASSIFIER = re.compile(r"Programming Language :: Python :: (3\.\d+)")


def test_the_table_is_of_the_recorded_runs() -> None:
    assert support_lines.PAGE.read_text() == support_lines.page(), "run make docs"


def test_the_lines_that_ci_runs_passed_as_they_are_locked() -> None:
    """A new version in a lock asks for a new run: ``make test-lines``."""
    (of_ci,) = re.findall(r'test-lines LINES="([^"]+)"', (ROOT / ".ci/run").read_text())
    passed = {run.spark for run in known_runs() if not run.failed and run.passed > 10}
    assert {locked(line) for line in of_ci.split()} <= passed


def test_nothing_is_recorded_of_what_is_not_supported_or_did_not_pass() -> None:
    supported = {locked(line) for line in SPARK_LINES}
    assert {run.spark for run in known_runs()} <= supported
    assert [run for run in known_runs() if run.failed or not run.day] == []


def test_a_line_of_spark_takes_the_pythons_that_it_has_passed_on() -> None:
    for line, known in SPARK_LINES.items():
        run_on = {run.python for run in known_runs() if run.line == line and not run.failed}
        assert max(tuple(map(int, python.split("."))) for python in run_on) == known.newest_python, line


def test_the_package_takes_the_lines_and_no_others() -> None:
    (bounds,) = [one for one in PROJECT["dependencies"] if one.startswith("pyspark")]
    major, minor = list(SPARK_LINES)[-1].split(".")
    assert bounds == f"pyspark>={locked('3.5')},<{major}.{int(minor) + 1}"


def test_the_classifiers_name_the_pythons_that_were_run() -> None:
    classifiers = [match[1] for one in PROJECT["classifiers"] if (match := _CLASSIFIER.fullmatch(one))]
    assert set(classifiers) == {run.python for run in known_runs()}
    assert PROJECT["requires-python"] == f">={classifiers[0]}"


def test_a_failed_test_is_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_results, "RESULTS", tmp_path / "results.json")
    record(LineRun(locked("4.3"), "3.11", 10))
    cases = '<testcase name="test_a"/><testcase name="test_b"><failure/></testcase>'
    (tmp_path / "junit.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    run = run_of(tmp_path / "junit.xml")
    assert (run.passed, run.failed, run.python) == (1, ["test_b"], f"3.{sys.version_info.minor}")
    record(LineRun(locked("4.3"), "3.11", run.passed, run.failed, "2026-01-31"))
    assert len(known_runs()) == 1
    assert f"| {locked('4.3')} | 1 passed, failed: test_b, 2026-01-31 |" in support_lines.table()
    assert f"| {locked('4.0')} | not run |" in support_lines.table()


def test_a_run_without_tests_is_refused(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text("<testsuites><testsuite/></testsuites>")
    with pytest.raises(ValueError, match="no test ran"):
        run_of(tmp_path / "junit.xml")
