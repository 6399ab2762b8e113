from __future__ import annotations

from pathlib import Path

import pytest

from tests.hudilake.services.fsck import tables


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("sound")
    return {"plain": tables.make_plain(root / "plain"), "indexed": tables.make_indexed(root / "indexed")}


@pytest.fixture
def plain(sound: dict[str, Path], tmp_path: Path) -> Path:
    return tables.copy(sound["plain"], tmp_path / "plain")


@pytest.fixture
def indexed(sound: dict[str, Path], tmp_path: Path) -> Path:
    return tables.copy(sound["indexed"], tmp_path / "indexed")
