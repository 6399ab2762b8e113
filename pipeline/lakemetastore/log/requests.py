"""Commits of the threads of one process: those that wait for the same log are written as one entry."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lakemetastore.log.records import IntentRecord
from lakemetastore.log.replica import LogView

S = TypeVar("S")
E = TypeVar("E")


@dataclass(eq=False)
class Request(Generic[S, E]):
    """A change that a thread wants.

    Args:
        propose: the change for a view of the log, None if there is nothing to change; may raise to refuse.
        intent: what the change concerns; None for the whole.
        turn: is set when the request is settled, or when its thread has to write.
    """

    propose: Callable[[LogView[S]], E | None]
    intent: IntentRecord | None = None
    view: LogView[S] | None = None
    error: BaseException | None = None
    turn: threading.Event = field(default_factory=threading.Event)

    @property
    def is_settled(self) -> bool:
        """Whether it is known what became of it."""
        return self.view is not None or self.error is not None

    def result(self) -> LogView[S]:
        """The view with the change. Raises what ``propose`` or the write raised."""
        if self.error is not None:
            raise self.error
        assert self.view is not None
        return self.view


@dataclass
class Requests(Generic[S, E]):
    """The requests of a process to one log, first come first served.

    Args:
        write: settles some requests.
        most: how many at once.
    """

    write: Callable[[Sequence[Request[S, E]]], None]
    most: int
    _waiting: deque[Request[S, E]] = field(default_factory=deque)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _is_writing: bool = False

    def settle(self, request: Request[S, E]) -> LogView[S]:
        """Wait until a request is settled. One thread writes, for all that came while another one wrote."""
        with self._guard:
            self._waiting.append(request)
            if not self._is_writing:
                self._is_writing = True
                request.turn.set()
        try:
            request.turn.wait()
        except BaseException:
            self._withdraw(request)
            raise
        if not request.is_settled:
            self._write_for_all(request)
        return request.result()

    def _withdraw(self, request: Request[S, E]) -> None:
        """A signal ended the wait of a thread: give its turn on, if it has it."""
        with self._guard:
            if request in self._waiting:
                self._waiting.remove(request)
                if request.turn.is_set():
                    self._give_turn()

    def _give_turn(self) -> None:
        self._is_writing = bool(self._waiting)
        if self._waiting:
            self._waiting[0].turn.set()

    def _write_for_all(self, mine: Request[S, E]) -> None:
        """Write the first requests, the own one first of all, and give the turn on."""
        with self._guard:
            group = [self._waiting.popleft() for _ in range(min(self.most, len(self._waiting)))]
        try:
            self.write(group)
        finally:
            with self._guard:
                # If a signal ends this thread, another one writes for those that it leaves.
                left = [each for each in group if not (each.is_settled or each is mine)]
                self._waiting.extendleft(reversed(left))
                self._give_turn()
            for each in group:
                if each.is_settled:
                    each.turn.set()
