"""Runs of actors on copies of a table, and what was found wrong after each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.hudilake.actors.actors import Part, archiver, cleaner, compactor, restorer, writer
from tests.hudilake.actors.calls import run_by_calls
from tests.hudilake.actors.orders import Run, every_order, some_orders
from tests.hudilake.actors.side_by_side import BESIDE, beside
from tests.hudilake.actors.world import World

PARTS: dict[str, Part] = {
    "writer": writer,
    "other": writer,
    "compactor": compactor,
    "second": compactor,
    "cleaner": cleaner,
    "archiver": archiver,
    "restorer": restorer,
    **dict.fromkeys(BESIDE, beside),
}
#: More orders by chance than the usual run takes: as many times.
MORE = int(os.environ.get("BINLAKE_MORE_ORDERS", "1"))
#: Which ones: any number, to be given again to repeat a run.
SEED = int(os.environ.get("BINLAKE_ORDERS_SEED", "1"))
#: Names of PARTS, and for how many rounds.
Cast = Mapping[str, int]


@dataclass
class Runs:
    """Runs of one cast.

    Args:
        made: the template.
        directory: for the copies.
        cast: who.
        rust_every: hudi-rs reads the table of every so many orders.
        until: what is looked for in what is wrong: no more orders are run once it was seen.
    """

    made: World
    directory: Path
    cast: Cast
    rust_every: int = 10
    until: tuple[str, ...] = ()
    orders: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    actions: set[str] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=count)
    world: World = field(init=False)

    @property
    def seen(self) -> bool:
        """Whether what is looked for has been found."""
        return any(sign in wrong for wrong in self.wrong[-1:] for sign in self.until)

    def every(self) -> Runs:
        """Every order there is."""
        return self._look(every_order(self.new))

    def some(self, orders: int) -> Runs:
        """So many by chance."""
        return self._look(some_orders(self.new, orders * MORE, SEED))

    def _look(self, runs: Iterator[Run]) -> Runs:
        for run in runs:
            self.look(str(run), run.failures)
            if self.seen:
                break
        print(f"{self}: {len(self.orders)} orders, seed {SEED}, {len(self.wrong)} wrong")
        return self

    def new(self) -> Run:
        """The actors on a new copy."""
        world = self.fresh()
        calls = {name: world.calls.setdefault(name, []) for name in self.cast}
        return Run({name: PARTS[name](world, name, rounds) for name, rounds in self.cast.items()}, calls)

    def fresh(self) -> World:
        """A new copy; the one before it goes."""
        if hasattr(self, "world"):
            self.world.remove()
        self.world = self.made.twin(self.directory / str(next(self._numbers)))
        return self.world

    def by_calls(self, count: int, *, first: int = 0, tolerated: tuple[type[Exception], ...] = ()) -> Runs:
        """So many runs in threads whose turns change at storage calls (``calls``). Who fails with what is tolerated is
        cleared away, as the next process does."""
        parts = {name: (PARTS[name], rounds) for name, rounds in self.cast.items()}
        first += 1000 * SEED
        for seed in range(first, first + count * MORE):
            failures = run_by_calls(self.fresh(), parts, seed).failures
            for owner in [name for name, error in failures.items() if isinstance(error, tolerated)]:
                self.world.bury(owner)
                self.world.opened("next").rollback_pending()
                del failures[owner]
            self.look(f"seed {seed}", failures)
            if self.seen:
                break
        print(f"{self}: {len(self.orders)} runs from seed {first}, {len(self.wrong)} wrong")
        return self

    def look(self, order: str, failures: Mapping[str, BaseException]) -> None:
        """At the table after an order, and at how its actors failed."""
        rust = len(self.orders) % self.rust_every == 0
        self.orders.append(order)
        self.actions |= self.world.done()
        trouble = [*(f"{name} failed: {error!r}" for name, error in failures.items()), *self.world.trouble(rust=rust)]
        if trouble:
            self.wrong.append(f"{order}: {trouble}")

    def __str__(self) -> str:
        return f"{' x '.join(self.cast)} ({'indexed' if self.made.indexed else 'listed'})"
