"""What keeps the actors apart, taken away piece by piece: then the same orders leave a wrong table or a failed actor.

So each pair is seen to need: writers the lock, what is taken in under it, and that none overtakes; a writer and a
compactor what is taken in under the lock; all that roll back at their start the heartbeats; a cleaner beside a writer
times that nobody else has, beside a compactor the lock.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pytest

from hudilake import clock
from hudilake.clock import InstantClock
from hudilake.locking.ownership import Ownership
from hudilake.table.publisher import Publisher
from hudilake.table.table_state import TableState
from tests.hudilake.actors.calls import without_pools
from tests.hudilake.actors.running import Cast, Runs
from tests.hudilake.actors.world import World

WithoutIt = Callable[[pytest.MonkeyPatch], None]
WRONG_ROWS = ("our reader", "hudi-rs")


class NoLock:
    """Everybody's at any time."""

    shared = others_held = True

    def __enter__(self) -> NoLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def check(self) -> None: ...


def no_lock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("hudilake.locking.ownership.table_lock", lambda *_: NoLock())


def no_lock_and_no_second_look(patch: pytest.MonkeyPatch) -> None:
    no_lock(patch)
    patch.setattr("hudilake.services.compaction.completion._check_sound", lambda *_: None)


def nothing_taken_in(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TableState, "_take_in", lambda _: None)


def overtaking(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Publisher, "_check_not_overtaken", lambda *_: None)


def no_heartbeats(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ownership, "is_abandoned", lambda *_: True)


def times_that_others_have(patch: pytest.MonkeyPatch) -> None:
    def any_millisecond(times: InstantClock, _: int) -> str:
        times._last_ms = max(clock.now_ms(), times._last_ms + 1)
        return clock.format_instant(times._last_ms)

    patch.setattr(InstantClock, "_next", any_millisecond)


def times_before_the_metadata_tables_own(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("hudilake.metadata.table.is_time", lambda _: False)


def properties_not_read_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TableState, "check_config", lambda _: None)


def begun_commits_left_beside_a_restore(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("hudilake.services.restore._roll_back_begun", lambda _: None)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("cast", "without", "signs"),
    [
        ({"writer": 1, "other": 1}, nothing_taken_in, WRONG_ROWS),
        ({"writer": 1, "other": 1}, overtaking, WRONG_ROWS),
        ({"writer": 1, "other": 1}, no_heartbeats, ("writer failed",)),
        ({"writer": 1, "compactor": 1}, no_heartbeats, ("writer failed",)),
        ({"writer": 1, "cleaner": 1}, no_heartbeats, ("writer failed",)),
        ({"compactor": 1, "second": 1}, no_heartbeats, ("compactor failed",)),
    ],
)
def test_phases(
    templates: dict[bool, World],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cast: Cast,
    without: WithoutIt,
    signs: tuple[str, ...],
) -> None:
    without(monkeypatch)
    assert Runs(templates[False], tmp_path, cast, rust_every=1, until=signs).every().seen


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("cast", "without", "indexed", "signs", "first"),  # at which seed it is looked for first: near one that shows it
    [
        ({"writer": 1, "other": 1}, no_lock, False, WRONG_ROWS, 5),
        ({"writer": 1, "compactor": 1}, no_lock_and_no_second_look, False, WRONG_ROWS, 0),
        ({"writer": 1, "compactor": 1}, nothing_taken_in, False, WRONG_ROWS, 75),
        ({"compactor": 2, "cleaner": 2}, no_lock, False, ("pending: ",), 0),
        ({"writer": 2, "cleaner": 2}, times_that_others_have, False, ("pending: ",), 5),
        ({"writer": 2, "compactor": 2}, times_before_the_metadata_tables_own, True, ("pending in the metadata",), 0),
        ({"restorer": 1, "cleaner": 2}, properties_not_read_again, True, ("lists a file that is gone",), 10),
        ({"restorer": 1, "writer": 2}, begun_commits_left_beside_a_restore, True, ("restorer failed",), 50),
    ],
)
def test_storage_calls(
    templates: dict[bool, World],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cast: Cast,
    without: WithoutIt,
    indexed: bool,
    signs: tuple[str, ...],
    first: int,
) -> None:
    without_pools(monkeypatch)
    without(monkeypatch)
    assert Runs(templates[indexed], tmp_path, cast, rust_every=1, until=signs).by_calls(200, first=first).seen
