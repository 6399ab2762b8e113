"""The same actors in threads, whose turns change at single storage calls by chance."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.commit.preconditions import ForeignActionError
from hudilake.errors import LostOwnershipError, UnsupportedError
from tests.hudilake.actors.calls import without_pools
from tests.hudilake.actors.running import Cast, Runs
from tests.hudilake.actors.world import World
from tests.selection import first

#: Who, and how many runs.
CASTS: list[tuple[Cast, int]] = [
    ({"writer": 1, "compactor": 1}, 12),
    ({"writer": 1, "other": 1}, 10),
    ({"writer": 2, "cleaner": 2}, 5),
    ({"compactor": 1, "cleaner": 2}, 6),
    ({"compactor": 2, "second": 2}, 5),
    ({"writer": 2, "archiver": 3}, 5),
    ({"writer": 1, "other": 1, "compactor": 1, "cleaner": 2, "archiver": 2}, 5),
]
#: What an actor may end in beside a restore: the table it worked on is no more, or no longer has what it asks for.
BESIDE_A_RESTORE = (ForeignActionError, LostOwnershipError, UnsupportedError)


@pytest.fixture(autouse=True)
def _in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    without_pools(monkeypatch)


@pytest.mark.full
@pytest.mark.parametrize(("cast", "count"), first(3, CASTS), ids=["-".join(cast) for cast, _ in CASTS])
def test_turns_by_chance(made: World, tmp_path: Path, cast: Cast, count: int) -> None:
    assert Runs(made, tmp_path, cast).by_calls(count).wrong == []


@pytest.mark.full
@pytest.mark.parametrize("actor", first(1, ["writer", "compactor", "cleaner"]))
def test_a_restore_takes_nothing_else_along(made: World, tmp_path: Path, actor: str) -> None:
    """Who is at work beside a restore ends in an error, or does it on the table that was restored."""
    runs = Runs(made, tmp_path, {"restorer": 1, actor: 2}).by_calls(8, tolerated=BESIDE_A_RESTORE)
    assert runs.wrong == []
    assert "restore" in runs.actions
