"""Each distribution declares what its package imports and nothing else; what few need, in an extra."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from distributions.build import PLACES
from tests.paths import ROOT

#: Modules that a library brings with another one, or calls by another name.
_LIBRARY = {
    "fb303": "pyiceberg",
    "hive_metastore": "pyiceberg",
    "botocore": "boto3",
    "py4j": "pyspark",
    "pydantic_core": "pydantic",
    "pythonjsonlogger": "python-json-logger",
    "sqlalchemy": "SQLAlchemy",
    "yaml": "PyYAML",
    "pymysql": "PyMySQL",
}
#: Libraries that a library of theirs imports by itself (drivers of SQLAlchemy, pandas for frames and Spark's batches), and
#: those of the demo beside the package.
_THROUGH_OTHERS = {
    "hudilake": {"pandas"},
    "lakemetastore": {"pymysql", "psycopg"},
    "binlake": {"pandas", "hudi", "kafka-python"},
}
#: Extras for work on this repository.
_TOOLS = {"binlake": {"test", "dev"}}
_OURS = {"hudilake", "lakemetastore", "binlake"}


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


def _imports(file: Path) -> Iterator[tuple[str, bool]]:
    """Top-level modules that a file imports, and whether it does so as soon as it is imported itself."""

    def walk(node: ast.AST, *, at_once: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Import):
                yield from ((alias.name.partition(".")[0], at_once) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                yield str(child.module).partition(".")[0], at_once
            else:
                yield from walk(child, at_once=at_once and not isinstance(child, ast.FunctionDef))

    return walk(ast.parse(file.read_text()), at_once=True)


def _libraries(package: str) -> set[str]:
    """The distributions whose modules a package imports, those of this repository too."""
    modules = {module for file in (ROOT / "pipeline" / package).rglob("*.py") for module, _ in _imports(file)}
    others = modules - set(sys.stdlib_module_names) - {package}
    return {_LIBRARY.get(module, module).lower().replace("_", "-") for module in others}


@pytest.mark.parametrize("place", PLACES)
def test_what_is_imported_is_declared_and_nothing_else(place: str) -> None:
    declared = Declared.at(place)
    through = _THROUGH_OTHERS.get(declared.name, set())
    assert _libraries(declared.name) | through == declared.all


def test_the_walk_over_imports_sees_a_library_that_is_not_declared(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("import requests\ndef f():\n    from flask import x\nif TYPE_CHECKING:\n    import django\n")
    assert set(_imports(file)) == {("requests", True), ("flask", False)}


def test_versions_of_the_three_are_one() -> None:
    versions, pins = set(), set()
    for place in PLACES:
        text = (ROOT / place / "pyproject.toml").read_text()
        versions.add(tomllib.loads(text)["project"]["version"])
        pins |= set(re.findall(r'"(?:hudilake|lakemetastore)(?:\[[\w,]+\])?==([\d.]+)"', text))
    assert versions == pins
    assert len(versions) == 1


def test_the_locks_hold_hashes_and_no_addresses() -> None:
    for lock in ROOT.glob("requirements*.lock"):
        text = lock.read_text()
        packages = re.findall(r"^[\w.-]+==\S+", text, re.MULTILINE)
        assert packages, lock
        assert len(re.findall(r"^[\w.-]+==\S+.*\\\n    --hash=sha256:", text, re.MULTILINE)) == len(packages)
        assert not re.search(r"https?://|file:|^-", text, re.MULTILINE)
        assert not {"hudilake", "lakemetastore", "binlake"} & {name.partition("==")[0] for name in packages}


def test_binlake_gives_the_metastore_its_naming() -> None:
    (point,) = importlib.metadata.entry_points(group="lakemetastore.naming")
    assert point.load().__class__.__module__ == "binlake.tables.metastore_naming"
