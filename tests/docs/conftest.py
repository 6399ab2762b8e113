from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.shop import Shop


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the shop's ``lake`` and ``conf.yaml`` are. Tests must not change it."""
    place = tmp_path_factory.mktemp("shop")
    Shop(place).fill()
    return place
