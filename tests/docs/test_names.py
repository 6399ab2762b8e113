"""Modules, folders and Python names of ours that pages name exist; so do those in the READMEs beside the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from tests.docs.pages import blocks_of, inline_code, pages
from tests.paths import ROOT

SOURCES = ROOT / "pipeline"
PACKAGES = sorted(path.name for path in SOURCES.iterdir() if (path / "__init__.py").is_file())
#: Folders of the checkout that pages speak of, beside the packages.
FOLDERS = ("bench", "conf", "demo", "docker", "docs", "embedded", "examples", "jobs", "pipeline", "tests")
READMES = sorted(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md") if page.name == "README.md")
EVERY = [*pages(), ROOT / "ARCHITECTURE.md", *READMES]
_PATH = re.compile(rf"(?<![\w./:-])(?:(?:{'|'.join((*PACKAGES, *FOLDERS))})/[\w./-]*|\w+(?:/\w+)*/\w+\.py\b)")
#: A dotted name below a package of ours, in text or in an import.
_DOTTED = re.compile(rf"(?<![\w./`-])(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+")
_IMPORT = re.compile(rf"from ((?:{'|'.join(PACKAGES)})[\w.]*) import ([\w, ]+)")
#: Names with a dot that are keys of commits, of tables or of Spark, files, and metrics: no Python.
_KEYS = re.compile(r"binlake\.(?:yaml|zip|Dockerfile|[a-z_]+)$")


def wrong_paths(text: str) -> set[str]:
    """Paths in the text that begin with a folder of ours and lead nowhere, from the source root or the checkout."""
    named = {path.rstrip("./-") for path in _PATH.findall(text) if "*" not in path}
    return {path for path in named if not any((base / path).exists() for base in (SOURCES, ROOT))}


def wrong_names(text: str) -> set[str]:
    """Dotted names in the text that are no module, and no name that a module defines or imports."""
    named = {name for name in _DOTTED.findall(text) if not _KEYS.fullmatch(name)}
    imported = {f"{module}.{name.strip()}" for module, names in _IMPORT.findall(text) for name in names.split(",")}
    return {name for name in named | imported if not known(name) and name not in java_classes()}


def known(name: str) -> bool:
    """Whether a dotted name is a module, or a name (or an attribute of a name) in one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        if (file := module_file(parts[:end])) is not None:
            return end == len(parts) or parts[end] in names_in(file)
    return False


@lru_cache(maxsize=1)
def java_classes() -> frozenset[str]:
    """The classes of the endpoint that runs in HBase."""
    root = ROOT / "embedded" / "java"
    return frozenset(".".join(file.relative_to(root).with_suffix("").parts) for file in root.rglob("*.java"))


def module_file(parts: list[str]) -> Path | None:
    """The file of a module or package."""
    base = SOURCES.joinpath(*parts)
    return next((file for file in (base.with_suffix(".py"), base / "__init__.py") if file.is_file()), None)


@lru_cache(maxsize=256)
def names_in(file: Path) -> frozenset[str]:
    """What a module defines, imports or offers by a lookup of its own (``__all__``, tables of lazy names)."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    defined = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef | ast.alias)}
    aliased = {n.asname for n in nodes if isinstance(n, ast.alias) and n.asname}
    bound = {n.id for n in nodes if isinstance(n, ast.Name)}
    texts = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return frozenset(defined | aliased | bound | texts)


def code_of(page: Path) -> str:
    """All code of a page: between backticks, and fenced."""
    return "\n".join([*inline_code(page), *(block.text for block in blocks_of(page, page.read_text()))])


def on_pages(wrong: Callable[[str], set[str]]) -> dict[str, set[str]]:
    """What is wrong, by page."""
    found = {str(page.relative_to(ROOT)): wrong(code_of(page)) for page in EVERY}
    return {page: names for page, names in found.items() if names}


def test_paths_of_ours_exist() -> None:
    assert on_pages(wrong_paths) == {}


def test_python_names_of_ours_exist() -> None:
    assert on_pages(wrong_names) == {}


def test_control_stale_names_are_found() -> None:
    text = "`pipeline/hudi/read.py`, `binlake/rows/none/`, `hudilake/errors.py`, `tests/docs/`"
    assert wrong_paths(text) == {"pipeline/hudi/read.py", "binlake/rows/none"}
    code = "from hudilake.read import TableReader, NoReader\nhudilake.nothing.x\nhudilake.errors.ConfigError"
    assert wrong_names(code) == {"hudilake.read.NoReader", "hudilake.nothing.x"}
