"""How services have their work done: one task an item, wherever tasks run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class MapTasks(Protocol):
    """Runs a function over items, one task each, and returns the results in order: a thread pool's or Spark's map."""

    def __call__(self, function: Callable[[T], R], items: Sequence[T], /) -> list[R]:
        """Raises what the function raises, TransientError for a failed Spark job."""
        ...


def one_by_one(function: Callable[[T], R], items: Sequence[T], /) -> list[R]:
    """A MapTasks that runs the function here, one item after the other."""
    return [function(item) for item in items]
