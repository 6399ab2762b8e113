"""Maven artifacts by Ivy, against a Maven repository that the test lays out on disk."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyspark
import pytest

from binlake.stream.spark import jars
from binlake.stream.spark.jars import kafka_connector, pyspark_jars, resolve
from binlake.stream.spark.lines import SPARK_LINES, spark_line
from embedded.jars import spark_packages
from hudilake.errors import ConfigError, TransientError, UnsupportedError
from tests.embedded.maven_repository import publish, repository_environment


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in repository_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(jars, "_PAUSE_S", 0.01)
    publish(tmp_path, "org.example:leaf:1")
    publish(tmp_path, "org.example:other:1")
    publish(tmp_path, "org.example:root:1", needs=["org.example:leaf:1", "org.example:other:1"])
    return tmp_path / "repository"


def _names(found: list[Path]) -> list[str]:
    return [path.name for path in found]


def test_what_an_artifact_needs_comes_along_and_stays(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = resolve(["org.example:root:1"], "probe")
    assert _names(first) == ["leaf-1.jar", "other-1.jar", "root-1.jar"]
    assert {path.parent for path in first} == {first[0].parent}
    monkeypatch.setattr(jars, "_run_ivy", None)
    assert resolve(["org.example:root:1"], "probe") == first


def test_excluded_modules_stay_away(repository: Path) -> None:
    assert _names(resolve(["org.example:root:1"], "probe", exclude=["org.example:leaf"])) == [
        "other-1.jar",
        "root-1.jar",
    ]


def test_other_coordinates_are_another_set(repository: Path) -> None:
    assert _names(resolve(["org.example:leaf:1"], "probe")) == ["leaf-1.jar"]
    assert _names(resolve(["org.example:other:1"], "probe")) == ["other-1.jar"]


def test_calls_at_the_same_time_fetch_once(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Path] = []
    run_ivy = jars._run_ivy

    def counted(work: Path) -> subprocess.CompletedProcess[str]:
        runs.append(work)
        return run_ivy(work)

    monkeypatch.setattr(jars, "_run_ivy", counted)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: resolve(["org.example:leaf:1"], "probe"), range(4)))
    assert len(runs) == 1
    assert all(one == found[0] for one in found)


def test_a_passing_failure_is_tried_again(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = repository / "org" / "example" / "leaf"
    hidden = home.rename(home.with_name("hidden"))
    run_ivy = jars._run_ivy

    def mended(work: Path) -> subprocess.CompletedProcess[str]:
        outcome = run_ivy(work)
        if hidden.exists():
            hidden.rename(home)
        return outcome

    monkeypatch.setattr(jars, "_run_ivy", mended)
    assert _names(resolve(["org.example:leaf:1"], "probe")) == ["leaf-1.jar"]


@pytest.mark.full
def test_a_missing_artifact_is_named_and_leaves_nothing(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(TransientError, match=r"org\.example#absent;1"):
        resolve(["org.example:absent:1"], "probe")
    assert [path for path in (tmp_path / "cache" / "jars").iterdir() if path.is_dir()] == []


@pytest.mark.full
def test_a_jar_that_does_not_match_its_checksum_is_refused(repository: Path) -> None:
    (repository / "org/example/leaf/1/leaf-1.jar").write_bytes(b"something else")
    with pytest.raises(TransientError):
        resolve(["org.example:leaf:1"], "probe")


def test_a_coordinate_has_three_parts(repository: Path) -> None:
    with pytest.raises(ConfigError, match="three parts"):
        resolve(["org.example:leaf"], "probe")


def test_a_spark_without_a_known_connector_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark says itself which it is: where a cluster brings it, no metadata of a package does."""
    monkeypatch.setattr(pyspark, "__version__", "9.9.1")
    with pytest.raises(UnsupportedError, match=r"Spark 9\.9\.1") as raised:
        spark_packages()
    assert ", ".join(SPARK_LINES) in str(raised.value)


@pytest.mark.parametrize(
    ("spark", "python", "says"),
    [
        ("3.5.7", (3, 14), "Next: take Python 3.11 to 3.13, or a pyspark of the lines 4.0, 4.1, 4.2, 4.3"),
        ("4.3.0", (3, 15), "Next: take Python 3.11 to 3.14"),
    ],
)
def test_a_python_that_a_line_of_spark_is_not_known_to_run_on_is_refused(
    monkeypatch: pytest.MonkeyPatch, spark: str, python: tuple[int, int], says: str
) -> None:
    monkeypatch.setattr(pyspark, "__version__", spark)
    monkeypatch.setattr(sys, "version_info", (*python[:1], python[1] - 1, 0, "final", 0))
    assert spark_line() == spark.rpartition(".")[0]
    monkeypatch.setattr(sys, "version_info", (*python, 0, "final", 0))
    with pytest.raises(UnsupportedError, match=rf"Spark {spark} is not supported on Python 3\.{python[1]}") as raised:
        spark_line()
    assert str(raised.value).endswith(says)


def test_a_cache_that_cannot_be_made_is_told(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv("BINLAKE_CACHE", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="BINLAKE_CACHE"):
        resolve(["org.example:leaf:1"], "probe")


@pytest.mark.spark
@pytest.mark.lines
def test_the_connector_is_of_sparks_line_and_brings_nothing_that_spark_has() -> None:
    line = spark_line()

    def artifact(path: Path) -> str:
        return path.name.rsplit("-", 1)[0]

    found = kafka_connector()
    connectors = [path for path in found if path.name.startswith("spark-sql-kafka-0-10") and f"-{line}." in path.name]
    assert len(connectors) == (1 if SPARK_LINES[line].kafka_connector else 0)
    assert bool(found) == bool(connectors)
    assert {artifact(path) for path in found}.isdisjoint(artifact(path) for path in pyspark_jars().glob("*.jar"))


@pytest.mark.kafka
def test_the_command_prints_a_set() -> None:
    done = subprocess.run([sys.executable, "-m", "embedded.jars", "kafka"], capture_output=True, text=True, check=True)
    paths = [Path(line) for line in done.stdout.splitlines()]
    assert any(path.name.startswith("kafka_2.13-") for path in paths)
    assert all(path.is_file() for path in paths)
