"""The templates of this run's tables: made once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.hudi.actors.world import World, template

NewWorld = Callable[[], World]


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, World]:
    """By whether it keeps a metadata table."""
    root = tmp_path_factory.mktemp("templates")
    return {indexed: template(root / str(indexed), indexed) for indexed in (False, True)}


@pytest.fixture(params=[False, True], ids=["listed", "indexed"])
def indexed(request: pytest.FixtureRequest) -> bool:
    """Whether the table keeps a metadata table."""
    return bool(request.param)


@pytest.fixture
def made(templates: dict[bool, World], indexed: bool) -> World:
    """The template; to be copied, not changed."""
    return templates[indexed]
