"""Actors stepped phase by phase, in every order there is or in some of them.

Orders that differ only in neighbouring phases which cannot feel each other (neither writes what the other looks at) are
one and the same: of those only one is run (sleep sets). A phase in which a time is taken writes to the timeline, so two
such phases are never exchanged.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from hudilake.format.timeline.instant import TIMELINE_PATH
from hudilake.metadata.records.layout import METADATA_PATH

#: What an actor does next. One that waits for another is not stepped until the other has been.
WAITS = "waits"
Actor = Iterator[str]
_MAX_STEPS = 200
_WRITING = frozenset({"create", "write", "delete", "delete_tree"})
_WHOLE = (TIMELINE_PATH, METADATA_PATH)


@dataclass(frozen=True, slots=True)
class Footprint:
    """The paths that a phase looked at and wrote."""

    read: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()

    @classmethod
    def of(cls, calls: Sequence[tuple[str, str]]) -> Footprint:
        """Of storage calls. The lock is free between phases, so it is nothing to meet at."""
        met = [(method, _place(path)) for method, path in calls if not path.startswith(".hoodie/lock")]
        return cls(
            frozenset(path for method, path in met if method not in _WRITING),
            frozenset(path for method, path in met if method in _WRITING),
        )

    def is_independent(self, other: Footprint) -> bool:
        """Whether neither writes what the other looks at or writes."""
        return not (_meet(self.written, other.read | other.written) or _meet(other.written, self.read))


def _place(path: str) -> str:
    return next((whole for whole in _WHOLE if path.startswith(whole)), path)


def _meet(some: frozenset[str], others: frozenset[str]) -> bool:
    return any(_holds(a, b) or _holds(b, a) for a in some for b in others)


def _holds(directory: str, path: str) -> bool:
    return not directory or path == directory or path.startswith(f"{directory}/")


@dataclass
class Run:
    """Some actors on one table.

    Args:
        actors: by name; each gives out the name of its next phase before doing it.
        calls: by the same names, the storage calls that each makes.
        lives: by the same names, after how many phases an actor dies; without an entry never.
    """

    actors: dict[str, Actor]
    calls: dict[str, list[tuple[str, str]]]
    lives: dict[str, int] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)
    _next: dict[str, str] = field(default_factory=dict)
    _waiting: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for name in list(self.actors):
            self._advance(name)

    def able(self) -> list[str]:
        """Who can be stepped now: all that are not through, but for those who wait if there are others."""
        alive = [name for name in self._next if self.lives.get(name, 1) > 0]
        return [name for name in alive if name not in self._waiting] or alive

    def step(self, name: str) -> Footprint:
        """One phase."""
        assert len(self.order) < _MAX_STEPS, f"no end: {self}"
        self.order.append(f"{name}.{self._next[name]}")
        before = len(self.calls[name])
        self._waiting.clear()
        self.lives[name] = self.lives.get(name, _MAX_STEPS) - 1
        self._advance(name)
        return Footprint.of(self.calls[name][before:])

    def finish(self) -> None:
        """Step who can until nobody can."""
        while able := self.able():
            self.step(able[0])

    def _advance(self, name: str) -> None:
        try:
            phase = next(self.actors[name], None)
        except Exception as error:
            self.failures[name], phase = error, None
        if phase is None:
            self._next.pop(name, None)
        else:
            self._next[name] = phase
        if phase is None or not phase.startswith(WAITS):
            return
        self._waiting.add(name)

    def __str__(self) -> str:
        return " ".join(self.order)


@dataclass
class _Node:
    """One step of the order that is being run."""

    choice: str
    able: list[str]
    asleep: dict[str, Footprint]
    explored: dict[str, Footprint] = field(default_factory=dict)
    footprint: Footprint = field(default_factory=Footprint)


def every_order(new_run: Callable[[], Run]) -> Iterator[Run]:
    """Run the actors in every order of their phases; after each the run is given out for a look."""
    nodes: list[_Node] = []
    while True:
        run = new_run()
        for node in nodes:
            node.footprint = run.step(node.choice)
        if _extend(run, nodes):
            yield run
        if not _next_order(nodes):
            return


def _extend(run: Run, nodes: list[_Node]) -> bool:
    """Go on to the end, always with the first that can; False if it is the same as an order that was run."""
    while able := run.able():
        asleep: dict[str, Footprint] = {}
        if nodes:
            last = nodes[-1]
            slept = {**last.asleep, **last.explored}
            asleep = {name: f for name, f in slept.items() if name in able and f.is_independent(last.footprint)}
        free = [name for name in able if name not in asleep]
        if not free:
            return False
        nodes.append(_Node(free[0], able, asleep))
        nodes[-1].footprint = run.step(free[0])
    return True


def _next_order(nodes: list[_Node]) -> bool:
    while nodes:
        node = nodes[-1]
        node.explored[node.choice] = node.footprint
        left = [name for name in node.able if name not in node.asleep and name not in node.explored]
        if left:
            node.choice = left[0]
            return True
        nodes.pop()
    return False


def some_orders(new_run: Callable[[], Run], count: int, seed: int) -> Iterator[Run]:
    """So many orders by chance, some with long turns and some with short ones."""
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        run, stay, last = new_run(), chance.choice([0.0, 0.5, 0.8]), ""
        while able := run.able():
            last = last if last in able and chance.random() < stay else chance.choice(able)
            run.step(last)
        yield run
