"""Actors on one store whose calls are put in every order there is.

Orders that differ only in neighbouring calls which cannot feel each other (on different paths, or both only reading)
are one and the same: of those only the one is run in which the actor with the lower number goes first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from hudilake.storage import Storage
from tests.hudilake.failing_storage import CountingStorage

T = TypeVar("T")


class Actor:
    """A thread that stops before every call of its storage."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.finished = False
        self.failure: BaseException | None = None
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._work = work
        self.next_call = ("", "")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def before_call(self, method: str, path: str) -> None:
        """Called by the actor's own thread."""
        self.next_call = method, path
        self._stopped.release()
        self._go.acquire()

    def step(self) -> None:
        """Let it do one call and run up to the next."""
        self._go.release()
        self.await_stop()

    def await_stop(self) -> None:
        """Wait until it stands before a call, or is through."""
        self._stopped.acquire()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.failure = error
        self.finished = True
        self._stopped.release()


@dataclass
class SteppedStorage(CountingStorage):
    """Waits for its actor's turn before every call."""

    actor: list[Actor] = field(default_factory=list)

    def _call(self, method: str, path: str, action: Callable[[], T]) -> T:
        self.actor[0].before_call(method, path)
        return super()._call(method, path, action)


def start(storage: Storage, work: Callable[[Storage], None]) -> Actor:
    place: list[Actor] = []
    ready = threading.Event()

    def begin() -> None:
        ready.wait()
        work(SteppedStorage(storage, actor=place))

    actor = Actor(begin)
    place.append(actor)
    ready.set()
    actor.await_stop()
    return actor


def _independent(one: tuple[str, str], other: tuple[str, str]) -> bool:
    return one[1] != other[1] or {one[0], other[0]} <= {"read", "stat"}


def _run(storage: Storage, works: list[Callable[[Storage], None]], chosen: list[int]) -> tuple[list[list[int]], bool]:
    """One run along the choices given, then always the first that can.

    Returns who could go at each step, and whether the run stands for itself: not for another order of the same.
    """
    actors = [start(storage, work) for work in works]
    could: list[list[int]] = []
    last, last_call, own = -1, ("", ""), True
    while able := [n for n, actor in enumerate(actors) if not actor.finished]:
        step = len(could)
        new = [n for n in able if n >= last or not _independent(actors[n].next_call, last_call)]
        own = own and bool(new)
        could.append(new or able[:1])
        if step == len(chosen):
            chosen.append(could[-1][0])
        last, last_call = chosen[step], actors[chosen[step]].next_call
        actors[last].step()
    for actor in actors:
        if actor.failure is not None:
            raise actor.failure
    return could, own


def every_order(new_run: Callable[[], tuple[Storage, list[Callable[[Storage], None]]]]) -> Iterator[list[int]]:
    """Run the actors in every order of their storage calls; after each run the order is given out for a look.

    Args:
        new_run: makes the store anew, and what each actor does with its own view of it.
    """
    chosen: list[int] = []
    while True:
        storage, works = new_run()
        could, own = _run(storage, works, chosen)
        if own:
            yield list(chosen)
        while chosen and chosen[-1] == could[len(chosen) - 1][-1]:
            chosen.pop()
        if not chosen:
            return
        chosen[-1] = next(n for n in could[len(chosen) - 1] if n > chosen[-1])
