"""Actors in threads of their own, whose turns change at single storage calls, by chance."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import pytest

from hudilake.clock import now_ms
from hudilake.locking.file_lock import LOCK_PATH
from hudilake.storage.base import Storage
from tests.hudilake.actors.actors import Part
from tests.hudilake.actors.orders import WAITS
from tests.hudilake.actors.world import World
from tests.hudilake.locking.stepping import Actor, start

T = TypeVar("T")
_MAX_CALLS = 20_000
#: How often an actor asks for a lock that it cannot get.
_IN_VAIN = 0.02
_STAY = (0.0, 0.5, 0.9, 0.97)
_CALLS_PER_MS = (1, 10, 40)
#: The clocks of machines differ.
_AHEAD_MS = (0, 0, 150)
#: By name what each actor does, and its rounds.
Parts: TypeAlias = Mapping[str, tuple[Part, int]]


class InTurn(Executor):
    """A pool whose tasks are done at once by the caller: so all calls of an actor are its own thread's."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def submit(self, task: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401 - any task
        future: Future[Any] = Future()
        try:
            future.set_result(task(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def map(
        self, task: Callable[..., T], *items: Iterable[Any], timeout: object = None, chunksize: int = 1
    ) -> Iterator[T]:
        return iter([task(*each) for each in zip(*items, strict=False)])


def without_pools(patch: pytest.MonkeyPatch) -> None:
    """Let everything that the table's code does in pools be done in turn."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("hudilake", "binlake")) and hasattr(module, "ThreadPoolExecutor"):
            patch.setattr(module, "ThreadPoolExecutor", InTurn)


@dataclass
class Turns:
    """What happened in one run, and the failures of its actors by name."""

    order: list[str] = field(default_factory=list)
    failures: dict[str, BaseException] = field(default_factory=dict)


@dataclass
class _Part:
    """One actor. ``waits``: for others to come to their next phases."""

    thread: Actor
    waits: bool = False


@dataclass
class _Seen(World):
    """The world as one actor sees it: every call of its storage waits for its turn."""

    stepped: list[Storage] = field(default_factory=list)

    def storage(self, owner: str) -> Storage:
        return self.stepped[0]


def run_by_calls(world: World, parts: Parts, seed: int) -> Turns:
    """One run to the end.

    Args:
        world: its table.
        parts: by name what each actor does, and its rounds.
        seed: of chance.
    """
    chance, turns, began = random.Random(seed), Turns(), now_ms() // 2 * 2
    stay, calls_per_ms = chance.choice(_STAY), chance.choice(_CALLS_PER_MS)
    ahead = {name: chance.choice(_AHEAD_MS) for name in parts}

    def now() -> int:
        who = turns.order[-1].partition(":")[0] if turns.order else ""
        return began + len(turns.order) // calls_per_ms + ahead.get(who, 0)

    with pytest.MonkeyPatch.context() as patch:
        # Actors that take their times within the same millisecond are to be met, and the same ones every time.
        patch.setattr("hudilake.clock.now_ms", now)
        _run(world, parts, chance, stay, turns)
    return turns


def _run(world: World, parts: Parts, chance: random.Random, stay: float, turns: Turns) -> None:
    actors: dict[str, _Part] = {}
    for name, (part, rounds) in parts.items():
        actors[name] = _enter(world, name, part, rounds, actors)
    last = ""
    while alive := [name for name, actor in actors.items() if not actor.thread.finished]:
        assert len(turns.order) < _MAX_CALLS, "no end"
        free = [name for name in alive if not actors[name].waits] or alive
        if (world.path / LOCK_PATH).exists() and chance.random() > _IN_VAIN:
            free = [name for name in free if actors[name].thread.next_call != ("create", LOCK_PATH)] or free
        last = last if last in free and chance.random() < stay else chance.choice(free)
        turns.order.append(f"{last}: {' '.join(actors[last].thread.next_call)}")
        actors[last].thread.step()
    turns.failures = {n: a.thread.failure for n, a in actors.items() if a.thread.failure is not None}


def _enter(world: World, name: str, part: Part, rounds: int, actors: dict[str, _Part]) -> _Part:
    def work(storage: Storage) -> None:
        seen = _Seen(
            world.path,
            world.indexed,
            world.states,
            world.told,
            world.calls,
            world.policy,
            world.positions,
            stepped=[storage],
        )
        for phase in part(seen, name, rounds):
            mine = actors.get(name)
            for actor in actors.values():
                actor.waits = False
            if mine is not None:
                mine.waits = phase.startswith(WAITS)

    return _Part(start(world.storage(name), work))
