"""ARCHITECTURE.md against the tree: the modules it names exist, the rooms are all there, and no room is crowded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.paths import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text()
#: A folder with more modules than this is hard to keep in the head.
MOST_MODULES = 20


def missing(page: str) -> set[str]:
    """The modules that a page names and that are neither below ``pipeline/`` nor below the checkout."""
    named = set(re.findall(r"`([a-z_0-9/]+\.(?:py|md))`", page))
    return {name for name in named if not any((base / name).is_file() for base in (ROOT / "pipeline", ROOT))}


def rooms() -> list[Path]:
    """The folders of ``pipeline/`` that hold modules."""
    return sorted({module.parent for module in (ROOT / "pipeline").rglob("*.py")})


def crowded(folders: list[Path], most: int) -> list[str]:
    """The folders with more modules than ``most``, ``__init__`` left out."""
    counts = {folder: len([m for m in folder.glob("*.py") if m.name != "__init__.py"]) for folder in folders}
    return [f"{folder.relative_to(ROOT)}: {count}" for folder, count in counts.items() if count > most]


def test_every_module_that_the_page_names_exists() -> None:
    assert missing(PAGE) == set()
    assert missing("`stream/no_such_module.py`") == {"stream/no_such_module.py"}  # the control


def test_every_room_is_in_the_table() -> None:
    top = [path.name for path in (ROOT / "pipeline").iterdir() if (path / "__init__.py").is_file()]
    assert [name for name in top if f"`pipeline/{name}/" not in PAGE] == []


def test_no_room_is_crowded() -> None:
    assert crowded(rooms(), MOST_MODULES) == []
    assert crowded(rooms(), 2) != []  # the control


@pytest.mark.parametrize("room", rooms(), ids=lambda room: str(room.relative_to(ROOT)))
def test_every_room_says_its_duty_in_a_line(room: Path) -> None:
    first = (room / "__init__.py").read_text().splitlines()[0]
    assert first.startswith('"""')
    assert len(first) > len('"""A duty.')
