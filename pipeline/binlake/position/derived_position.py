"""How far a wide table follows the timeline of its table of cells, as its commits record it.

A wide table has no offsets of its own. Each of its commits says which completed action of the table of cells it has
taken in, under which declaration. The note names the commit's predecessor too, so that of two processes that derive at
the same time only one commits: the other one finds another predecessor under the table's lock.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from hudilake.locking.process_identity import ProcessIdentity, this_process

#: After so long without a commit a process that derives in portions is taken for dead, if nothing else tells.
SILENT_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class CellsMoment:
    """A completed action of the table of cells: a write of rows, or a restore.

    Args:
        instant: its requested time.
        completed: its completion time. Everything that completed until then is meant.
        pending: the requested times of the writes that were pending then: they complete later, or never.
    """

    instant: str
    completed: str
    pending: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DerivedPosition:
    """What a commit of a wide table says of the derivation.

    Args:
        until: the moment up to which all commits of the table of cells are derived; None if no derivation has ended.
        fingerprint: of the declaration by which the rows up to there were derived.
        order: the ordering value of the commit's rows, at least that of all rows before.
        derived_ms: when the cells were read, in ms since the epoch, and a name of the note: no other one of the table
            has it.
        follows_ms: ``derived_ms`` of the note before; None for the first one.
        swept_ms: up to when cells that have expired are taken out of the wide rows, in ms since the epoch.
        worker: the process that will commit further portions of the same derivation; None after the last one.
    """

    until: CellsMoment | None
    fingerprint: str
    order: int
    derived_ms: int
    follows_ms: int | None = None
    swept_ms: int = 0
    worker: ProcessIdentity | None = None

    @property
    def under_way(self) -> bool:
        """Whether further portions follow, unless the process has died."""
        return self.worker is not None

    def is_left(self, now_ms: int) -> bool:
        """Whether no other process goes on with the derivation: it has ended, is this process's own, its process is
        gone, or it has committed nothing for a minute."""
        worker = self.worker
        here = worker is None or worker == this_process() or worker.is_gone()
        return here or now_ms - self.derived_ms >= SILENT_MS

    def to_text(self) -> str:
        """Returns a JSON object of the fields, ``until`` as [instant, completed, pending] or null."""
        until = None if self.until is None else [self.until.instant, self.until.completed, self.until.pending]
        data: dict[str, object] = {"until": until, "fingerprint": self.fingerprint, "order": self.order}
        data |= {"derived": self.derived_ms, "follows": self.follows_ms, "swept": self.swept_ms}
        worker = None if self.worker is None else self.worker.to_json()
        return json.dumps(data | {"worker": worker}, separators=(",", ":"))

    @staticmethod
    def from_text(text: str) -> DerivedPosition:
        """The reverse of ``to_text``. Raises ValueError, KeyError, TypeError."""
        data = json.loads(text)
        instant, completed, pending = data["until"] or (None, "", ())
        return DerivedPosition(
            None if instant is None else CellsMoment(instant, completed, tuple(pending)),
            data["fingerprint"],
            data["order"],
            data["derived"],
            data["follows"],
            data["swept"],
            ProcessIdentity.from_json(data["worker"]),
        )
