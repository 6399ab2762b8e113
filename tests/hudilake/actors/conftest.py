"""The templates of this run's tables: made once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.hudilake.actors.world import World, template
from tests.hypothesis_profile import usually
from tests.selection import first

NewWorld = Callable[[], World]


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, World]:
    """By whether it keeps a metadata table."""
    root = tmp_path_factory.mktemp("templates")
    return {indexed: template(root / str(indexed), indexed) for indexed in (False, True)}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``make test`` takes tables with a metadata table; ``make test-rest`` takes others through the orders of
    two actors, and where a test says so."""
    own = any("indexed" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "indexed" in metafunc.fixturenames and not own:
        both = [True, False]
        kinds = both if metafunc.module.__name__.endswith("test_orders") else usually([True], both)
        ids = ["indexed" if kind else "listed" for kind in kinds]
        metafunc.parametrize("indexed", first(1, kinds), ids=ids, indirect=True)


@pytest.fixture
def indexed(request: pytest.FixtureRequest) -> bool:
    """Whether the table keeps a metadata table."""
    return bool(request.param)


@pytest.fixture
def made(templates: dict[bool, World], indexed: bool) -> World:
    """The template; to be copied, not changed."""
    return templates[indexed]
