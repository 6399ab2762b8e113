"""ARCHITECTURE.md against the tree: what it names exists, every room is in it, in the order of the import contracts."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.paths import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text()
SOURCES = ROOT / "pipeline"
PACKAGES = sorted(path.name for path in SOURCES.iterdir() if (path / "__init__.py").is_file())
#: Three screens.
MOST_LINES = 150


def missing(page: str) -> set[str]:
    """The modules and folders that a page names and that are neither below ``pipeline/`` nor below the checkout."""
    named = set(re.findall(r"`([a-z_0-9]+/[a-z_0-9/]*(?:\.(?:py|md|toml))?)`", page))
    return {name for name in named if not any((base / name).exists() for base in (SOURCES, ROOT))}


def rooms() -> list[Path]:
    """The folders of ``pipeline/`` that hold modules."""
    return sorted({module.parent for module in SOURCES.rglob("*.py")})


def layers(package: str) -> list[list[str]]:
    """The rooms of a package by its contract, from the top; those of one layer together."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    own = next(c for c in contracts if c["type"] == "layers" and _is_of(c, package))
    names = [re.split(r"\s*[|:]\s*", layer) for layer in own["layers"]]
    return [[name.removeprefix(f"{package}.").replace(".", "/") for name in layer] for layer in names]


def _is_of(contract: dict[str, list[str]], package: str) -> bool:
    inside = [layer for layer in contract["layers"] if layer.startswith(f"{package}.") and layer.count(".") > 1]
    return package in contract.get("containers", []) or len(inside) > 5


def places(package: str, page: str) -> list[int]:
    """Which row of the package's table each layer of its contract stands in, for those that have a row."""
    table = page.partition(f"| room of `{package}/`")[2].partition("\n\n")[0].splitlines()
    rows = [re.findall(rf"`{package}/([a-z_/]+)/`", line) for line in table]
    known = {name: number for number, names in enumerate(rows) for name in names}
    return [known[name] for layer in layers(package) for name in layer if name in known]


def test_everything_that_the_page_names_exists() -> None:
    assert missing(PAGE) == set()
    assert missing("`stream/no_such_module.py` and `binlake/no_room/`") == {  # the control
        "stream/no_such_module.py",
        "binlake/no_room/",
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_every_room_is_on_the_page(package: str) -> None:
    inside = [path.name for path in (SOURCES / package).iterdir() if (path / "__init__.py").is_file()]
    assert inside
    assert [name for name in inside if f"`{package}/{name}/" not in PAGE] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_the_rooms_stand_in_the_order_of_their_imports(package: str) -> None:
    order = places(package, PAGE)
    assert len(order) > 5
    assert order == sorted(order)


def test_control_rooms_in_another_order_are_found() -> None:
    page = "| room of `hudilake/` |\n| `hudilake/storage/` |\n| `hudilake/read/` |\n\n"
    assert places("hudilake", page) == [2, 1]


def test_the_page_has_three_screens() -> None:
    assert len(PAGE.splitlines()) <= MOST_LINES


@pytest.mark.parametrize("room", rooms(), ids=lambda room: str(room.relative_to(ROOT)))
def test_every_room_says_its_duty_in_a_line(room: Path) -> None:
    first = (room / "__init__.py").read_text().splitlines()[0]
    assert first.startswith('"""')
    assert len(first) > len('"""A duty.')
