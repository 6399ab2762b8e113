"""Two actors, each with a table and a lock of its own as in two processes, stepped phase by phase in every order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hudilake.actors.running import Cast, Runs
from tests.hudilake.actors.world import World
from tests.selection import first

#: Who, what has completed after some order of theirs, and a phase that some of the orders must have.
PAIRS: list[tuple[Cast, set[str], str]] = [
    ({"writer": 1, "other": 1}, {"deltacommit", "rollback"}, "abort"),
    ({"writer": 1, "compactor": 1}, {"deltacommit", "commit"}, "waits"),
    ({"restorer": 2, "writer": 1}, {"deltacommit", "restore"}, "waits"),
    ({"writer": 1, "cleaner": 1}, {"deltacommit", "clean"}, ""),
    ({"compactor": 1, "cleaner": 1}, {"commit", "clean"}, ""),
    ({"compactor": 1, "second": 1}, {"commit"}, ""),
    ({"writer": 1, "archiver": 1}, {"deltacommit", "archival"}, ""),
]
#: Sequences of more rounds have too many orders: so many by chance.
LONGER: list[tuple[Cast, int]] = [
    ({"writer": 2, "compactor": 2}, 10),
    ({"writer": 2, "cleaner": 2}, 5),
    ({"compactor": 2, "cleaner": 2}, 5),
    ({"writer": 2, "other": 2}, 10),
    ({"writer": 2, "other": 2, "compactor": 2, "cleaner": 2, "archiver": 2}, 6),
]


def _name(cast: Cast) -> str:
    return "-".join(cast)


@pytest.mark.full
@pytest.mark.parametrize(("cast", "actions", "phase"), first(3, PAIRS), ids=[_name(cast) for cast, *_ in PAIRS])
def test_every_order(made: World, tmp_path: Path, cast: Cast, actions: set[str], phase: str) -> None:
    runs = Runs(made, tmp_path, cast).every()
    assert runs.wrong == []
    assert actions <= runs.actions
    assert any(phase in order for order in runs.orders)


@pytest.mark.full
@pytest.mark.parametrize(("cast", "orders"), LONGER, ids=[_name(cast) for cast, _ in LONGER])
def test_two_rounds(made: World, tmp_path: Path, cast: Cast, orders: int) -> None:
    assert Runs(made, tmp_path, cast).some(orders).wrong == []


def test_what_was_archived_while_nobody_looked_has_completed(made: World, tmp_path: Path) -> None:
    """Commits that were made and archived between two looks of a writer count for it, and their rows stay."""
    runs = Runs(made, tmp_path, {"writer": 2, "other": 2, "archiver": 1})
    run = runs.new()
    idle = runs.world.opened("idle")
    run.finish()
    assert "archival" in runs.world.done()
    idle.refresh()
    seen = [log.name.instant for found in idle.file_slices() for log in found.log_files]
    fresh = [log.name.instant for found in runs.world.opened("fresh").file_slices() for log in found.log_files]
    assert seen == fresh
