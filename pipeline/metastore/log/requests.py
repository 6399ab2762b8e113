"""Commits of the threads of one process: those that wait for the same log are written as one entry."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pipeline.metastore.log.records import IntentRecord
from pipeline.metastore.log.replica import View

S = TypeVar("S")
E = TypeVar("E")


@dataclass(eq=False)
class Request(Generic[S, E]):
    """A change that a thread wants.

    Args:
        propose: the change for a view of the log, None if there is nothing to change; may raise to refuse.
        intent: what the change concerns; None for the whole.
    """

    propose: Callable[[View[S]], E | None]
    intent: IntentRecord | None = None
    view: View[S] | None = None
    error: BaseException | None = None

    @property
    def is_settled(self) -> bool:
        """Whether it is known what became of it."""
        return self.view is not None or self.error is not None

    def result(self) -> View[S]:
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
    _writing: threading.Lock = field(default_factory=threading.Lock)

    def settle(self, request: Request[S, E]) -> View[S]:
        """Wait until a request is settled; the thread that comes first writes for all that wait."""
        self._waiting.append(request)
        with self._writing:
            while not request.is_settled:
                group = [self._waiting.popleft() for _ in range(min(self.most, len(self._waiting)))]
                try:
                    self.write(group)
                finally:
                    # If a signal ends this thread, the others write for themselves.
                    left = [each for each in group if not (each.is_settled or each is request)]
                    self._waiting.extendleft(reversed(left))
        return request.result()
