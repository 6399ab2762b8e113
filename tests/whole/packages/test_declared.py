"""Each distribution declares what its package imports and nothing else; what few need, in an extra."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from distributions.build import PLACES
from tests.paths import ROOT
from tests.whole.packages.imports import imported_with, imports

#: Modules that a library brings with another one, or calls by another name.
_LIBRARY = {
    "fb303": "pyiceberg",
    "hive_metastore": "pyiceberg",
    "botocore": "boto3",
    "lance": "pylance",
    "py4j": "pyspark",
    "pydantic_core": "pydantic",
    "pythonjsonlogger": "python-json-logger",
    "sqlalchemy": "SQLAlchemy",
    "yaml": "PyYAML",
    "pymysql": "PyMySQL",
}
#: Libraries that a library of theirs imports by itself (drivers of SQLAlchemy, pandas for frames and for Spark), and
#: those of the demo beside the package.
_THROUGH_OTHERS = {
    "hudilake": {"pandas"},
    "lakemetastore": {"pymysql", "psycopg"},
    "binlake": {"pandas", "hudi", "kafka-python"},
}
#: Extras for work on this repository.
_TOOLS = {"binlake": {"test", "dev"}}


@dataclass(frozen=True)
class Declared:
    """What a distribution needs: always, and by extra. Names of distributions, in lower case."""

    name: str
    always: frozenset[str]
    extras: Mapping[str, frozenset[str]]

    @classmethod
    def at(cls, place: str) -> Declared:
        project: dict[str, Any] = tomllib.loads((ROOT / place / "pyproject.toml").read_text())["project"]
        extras = project["optional-dependencies"]
        tools = _TOOLS.get(project["name"], set())
        return cls(
            project["name"],
            frozenset(map(_name, project["dependencies"])),
            {extra: frozenset(map(_name, needs)) for extra, needs in extras.items() if extra not in tools},
        )

    @property
    def all(self) -> frozenset[str]:
        return self.always.union(*self.extras.values())


def _name(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement)[0].lower().replace("_", "-")


def _libraries(package: str) -> set[str]:
    """The distributions whose modules a package imports, those of this repository too."""
    files = (ROOT / "pipeline" / package).rglob("*.py")
    modules = {name.partition(".")[0] for file in files for name, _ in imports(file)}
    others = modules - set(sys.stdlib_module_names) - {package}
    return {_LIBRARY.get(module, module).lower().replace("_", "-") for module in others}


@pytest.mark.first(1)
@pytest.mark.parametrize("place", PLACES)
def test_what_is_imported_is_declared_and_nothing_else(place: str) -> None:
    declared = Declared.at(place)
    through = _THROUGH_OTHERS.get(declared.name, set())
    assert _libraries(declared.name) | through == declared.all


def test_the_walk_over_imports_sees_a_library_that_is_not_declared(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("import requests\ndef f():\n    from flask import x\nif TYPE_CHECKING:\n    import django\n")
    assert set(imports(file)) == {("requests", True), ("flask.x", False)}


def test_versions_of_the_three_are_one() -> None:
    versions, pins = set(), set()
    for place in PLACES:
        text = (ROOT / place / "pyproject.toml").read_text()
        versions.add(tomllib.loads(text)["project"]["version"])
        pins |= set(re.findall(r'"(?:hudilake|lakemetastore)(?:\[[\w,]+\])?==([\d.]+)"', text))
    assert versions == pins
    assert len(versions) == 1


def test_the_locks_hold_hashes_and_no_addresses() -> None:
    for lock in [*ROOT.glob("requirements*.lock"), *ROOT.glob("lines/*.lock")]:
        text = lock.read_text()
        packages = re.findall(r"^[\w.-]+==\S+", text, re.MULTILINE)
        assert packages, lock
        assert len(re.findall(r"^[\w.-]+==\S+.*\\\n    --hash=sha256:", text, re.MULTILINE)) == len(packages)
        assert not re.search(r"https?://|file:|^-", text, re.MULTILINE)
        assert not {"hudilake", "lakemetastore", "binlake"} & {name.partition("==")[0] for name in packages}


def test_binlake_gives_the_metastore_its_naming() -> None:
    (point,) = importlib.metadata.entry_points(group="lakemetastore.naming")
    assert point.load().__class__.__module__ == "binlake.tables.metastore_naming"


@pytest.mark.full
def test_what_tests_import_is_in_the_locks_of_each_line_of_spark() -> None:
    """Each test may get the mark lines. A package that the environment lacks stops ``make test-lines`` at its start."""
    needed = _installed_for_tests()
    for spark in (ROOT / "lines").glob("spark-*.lock"):
        locked = _locked(ROOT / "lines/requirements.lock") | _locked(spark)
        assert {name: str(file) for name, file in needed.items() if name not in locked} == {}, spark.name
        assert needed.keys() - (locked - {"textual"}) == {"textual"}, "the control: a lock without an extra"


def _installed_for_tests() -> Mapping[str, Path]:
    """Distributions that are imported with the tests, each with a file that imports it.

    What is not installed here is left out: a test that does without it (PyTorch).
    """
    files = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "tests").rglob("conftest.py")]
    own = {"binlake", "hudilake", "lakemetastore"}
    brought_by = importlib.metadata.packages_distributions()
    return {
        _name(name): file.relative_to(ROOT)
        for package, file in imported_with(files, [ROOT, ROOT / "pipeline"]).items()
        for name in brought_by.get(package, ())
        if name not in own
    }


def _locked(lock: Path) -> set[str]:
    return {_name(name) for name in re.findall(r"^([\w.-]+)==", lock.read_text(), re.MULTILINE)}
