"""A table with a past that it can be put back to, and what its model was at every moment."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hudilake.format.timeline.instant import Instant
from hudilake.services.restore import finish_pending_restores, restore
from hudilake.storage.base import Storage
from tests.hudilake.lake import Change, deletes, upserts
from tests.hudilake.services.cleaning.aged import INDEX, Aged

State = dict[tuple[str, int], Change]


@dataclass
class Past(Aged):
    """One table. ``states``: of the model, by the instant of each write."""

    states: dict[str, State] = field(default_factory=dict)

    def write(self, changes: Sequence[Change] | None = None, extra: dict[str, str] | None = None) -> str:
        """One commit; its instant is one of its keys of extra metadata."""
        instant = super().write(changes, extra or {"turn": str(self.order + 1)})
        self.states[instant] = dict(self.model.state)
        return instant

    def compact(self) -> str:
        """A compaction of all that there is."""
        instant = super().compact()
        self.states[instant] = dict(self.model.state)
        return instant

    def forget_after(self, instant: str) -> None:
        """The model as it was at that moment; later moments are no more."""
        self.model.state = dict(self.states[instant])
        kept = [i for i, _ in self.moments].index(instant) + 1
        self.moments = self.moments[:kept]
        self.states = {i: self.states[i] for i, _ in self.moments}

    def restore(self, instant: str) -> Instant | None:
        """The table and the model."""
        done = restore(self.table, instant, INDEX if self.indexed else None)
        self.forget_after(instant)
        return done

    def recover(self, storage: Storage | None = None) -> None:
        """What a new process does first."""
        table = self.reopen(storage)
        finish_pending_restores(table, INDEX if self.indexed else None)
        table.rollback_pending()

    def copied(self, path: Path) -> Past:
        """The same table at another path."""
        shutil.copytree(self.path, path)
        twin = Past.__new__(Past)
        twin.__dict__.update(self.__dict__, path=path, moments=list(self.moments), states=dict(self.states))
        twin.model = type(self.model)(dict(self.model.state))
        return twin


def changes(turn: int, chance: random.Random) -> list[Change]:
    """Some rows of a few partitions."""
    day = f"d{chance.randrange(4)}"
    keys = chance.sample(range(8), 4)
    return upserts(keys[:3], turn, f"v{turn}-", day) + deletes(keys[3:], turn, day)
