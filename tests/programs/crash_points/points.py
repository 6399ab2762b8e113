"""Every storage call of a piece of work gets every answer; the next process goes on; the lake is what it must be."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hudilake.errors import LakeError, LostOwnershipError, TransientError
from hudilake.storage import Storage
from tests.binlake.stream.dying_store import Answer, DyingStore, Fate, Killed, answers_of
from tests.programs.crash_points.story import Place

#: Before which calls of the next process a late call arrives, in turns.
_ARRIVALS = (0, 12, 40, 1 << 30)


class Work(Protocol):
    """A piece of work on a lake that a process begins and another one may have to do to its end."""

    def prepare(self, place: Place) -> None:
        """Make the lake as it is before."""
        ...

    def do(self, place: Place, root: Storage) -> None:
        """Open the lake and do the work. Raises LakeError. Done again, it changes nothing."""
        ...

    def trouble(self, place: Place) -> list[str]:
        """Which rows are wrong once the work is done."""
        ...

    def go_on(self, place: Place) -> list[str]:
        """Apply one more batch. Everything that is wrong then."""
        ...


@dataclass(frozen=True)
class Point:
    """A call, its answer, and before which call of the next process it arrives if it is late."""

    at: int
    method: str
    path: str
    answer: Answer
    arrives_at: int = 0

    def __str__(self) -> str:
        late = f" before call {self.arrives_at}" if self.answer is Answer.LATE else ""
        return f"call {self.at}: {self.method} {self.path} is {self.answer}{late}"


def every_point(calls: Sequence[tuple[str, str]]) -> Iterator[Point]:
    """All points of a work that makes these calls."""
    turn = 0
    for at, (method, path) in enumerate(calls):
        for answer in answers_of(method):
            turn += answer is Answer.LATE
            yield Point(at, method, path, answer, _ARRIVALS[turn % len(_ARRIVALS)])


def sampled(points: Sequence[Point], count: int | None) -> list[Point]:
    """So many of each answer, evenly over the work; None for all."""
    if count is None:
        return list(points)
    found = []
    for answer in Answer:
        mine = [point for point in points if point.answer is answer]
        step = max(1, len(mine) // count)
        found += mine[step // 2 :: step][:count]
    return sorted(found, key=lambda point: point.at)


@dataclass
class Trial:
    """One work in one kind of store. ``new_place``: a place of that name in it, with nothing there."""

    work: Work
    new_place: Callable[[str], Place]

    def failures(self, count: int | None) -> list[str]:
        """What went wrong at so many points of each answer, or at all."""
        base = self.new_place("base")
        self.work.prepare(base)
        points = sampled(list(every_point(self.calls(base))), count)
        assert {point.answer for point in points} == set(Answer)
        return [text for point in points for text in self.at_point(base, point)]

    def calls(self, base: Place) -> list[tuple[str, str]]:
        """What the work calls if nothing goes wrong; everything is right then, and a batch later."""
        place, counting = self._copied(base, "count"), Fate()
        self.work.do(place, DyingStore(place.open(), counting))
        assert self.work.trouble(place) == []
        assert self.work.go_on(place) == []
        assert sum(len(answers_of(method)) > 1 for method, _ in counting.calls) > 5
        self._remove(place)
        return counting.calls

    def at_point(self, base: Place, point: Point) -> list[str]:
        """What goes wrong at one."""
        place = self._copied(base, f"{point.at}-{point.answer}-{point.arrives_at}")
        fate = Fate(point.at, point.answer)
        try:
            found = self._live(place, fate, point)
        except Exception as error:  # whatever it is, it is told with its point
            found = [f"{type(error).__name__}: {error}"]
        self._remove(place)
        actual = " ".join(fate.calls[point.at]) if len(fate.calls) > point.at else "was not reached"
        return [f"{point} ({actual}): {text}" for text in found]

    def _live(self, place: Place, fate: Fate, point: Point) -> list[str]:
        through = False
        with contextlib.suppress(Killed, LakeError):
            self.work.do(place, DyingStore(place.open(), fate))
            through = True
        following = fate.after(point.arrives_at)
        # A maintenance that failed is tried again later, and the work counts as done.
        found = [f"at once: {text}" for text in self.work.trouble(place)] if through and not fate.is_deadly else []
        self._do_again(place, following)
        following.arrive()
        if point.answer is not Answer.LATE:
            found += [f"done again: {text}" for text in self.work.trouble(place)]
        return found + [f"one batch later: {text}" for text in self.work.go_on(place)]

    def _do_again(self, place: Place, fate: Fate) -> None:
        """The next process; where it meets a late call it may end with an error that passes, and one more begins."""
        try:
            self.work.do(place, DyingStore(place.open(), fate))
        except (TransientError, LostOwnershipError):
            if fate.arriving is not None or len(fate.calls) <= fate.arrives_at:
                raise
            self.work.do(place, place.open())

    def _copied(self, base: Place, name: str) -> Place:
        place = self.new_place(name)
        if base.path is not None and place.path is not None:
            shutil.copytree(base.path, place.path)
        else:
            source, target = base.open(), place.open()
            for info in list(source.walk("")):
                target.write(info.path, source.read(info.path))
        return place

    def _remove(self, place: Place) -> None:
        place.open().delete_tree("")


def local_places(directory: Path) -> Callable[[str], Place]:
    """Places on local disk."""
    return lambda name: Place(str(directory / name))
