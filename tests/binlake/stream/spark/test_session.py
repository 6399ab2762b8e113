"""What a stream's Spark session is given: libraries that were fetched once, and a log without noise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import url2pathname

import pytest

from binlake.settings import Settings
from binlake.stream.spark import jars
from binlake.stream.spark.lines import connector_coordinate
from binlake.stream.spark.session import session_properties
from tests.embedded.maven_repository import publish
from tests.paths import ROOT


def properties(**spark: Any) -> dict[str, str]:  # noqa: ANN401 - any JSON
    settings = {
        "name": "s",
        "lake": {"uri": "file:///lake"},
        "kafka": {"bootstrap_servers": "localhost:9092", "topics": ["none"]},
        "spark": spark,
    }
    return session_properties(Settings.parse(json.dumps(settings)))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository that holds no more than the connector of this Spark, and an empty cache."""
    monkeypatch.setenv("BINLAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BINLAKE_MAVEN_REPOSITORY", (tmp_path / "repository").as_uri() + "/")
    publish(tmp_path, str(connector_coordinate()))
    return tmp_path


def test_the_second_start_resolves_nothing(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = properties()
    assert "spark.jars.packages" not in first
    (jar,) = first["spark.jars"].split(",")
    assert Path(jar).is_relative_to(repository / "cache")
    monkeypatch.setattr(jars, "_run_ivy", None)
    assert properties() == first


@pytest.mark.parametrize("named", ["spark.jars", "spark.jars.packages"])
def test_libraries_of_the_settings_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("BINLAKE_CACHE", str(tmp_path / "cache"))
    given = properties(conf={named: "theirs"})
    assert {name: value for name, value in given.items() if name.startswith("spark.jars")} == {named: "theirs"}
    assert not (tmp_path / "cache/jars").exists()


@pytest.mark.parametrize("named", ["spark.jars.ivySettings", "spark.jars.repositories"])
def test_where_the_settings_name_a_repository_spark_resolves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("BINLAKE_CACHE", str(tmp_path / "cache"))
    given = properties(conf={named: "theirs"})
    assert given["spark.jars.packages"] == connector_coordinate()
    assert "spark.jars" not in given
    assert not (tmp_path / "cache/jars").exists()


def test_a_jvm_of_spark_submit_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINLAKE_CACHE", str(tmp_path / "cache"))
    names = set(properties(master=None))
    ours = {"spark.jars", "spark.jars.packages", "spark.driver.defaultJavaOptions", "spark.scheduler.allocation.file"}
    assert names.isdisjoint(ours)


def test_the_log_is_ours_unless_there_is_one(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    configuration, log = properties()["spark.driver.defaultJavaOptions"].split()
    path = url2pathname(configuration.removeprefix("-Dlog4j2.configurationFile=file://"))
    assert "rootLogger.level = warn" in Path(path).read_text()
    assert Path(log.strip('"').removeprefix("-Dbinlake.spark.log=")).parent == repository / "cache/logs"
    monkeypatch.setenv("SPARK_CONF_DIR", str(repository))
    assert properties()["spark.driver.defaultJavaOptions"] != ""
    (repository / "log4j2.xml").write_text("<Configuration/>")
    assert properties()["spark.driver.defaultJavaOptions"] == ""


def test_spark_starts_before_the_stream_is_imported() -> None:
    look = "import sys, binlake.cli.commands.stream.run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, cwd=ROOT)
    assert {"binlake.stream.run", "pyarrow", "numba", "duckdb"}.isdisjoint(done.stdout.split())
