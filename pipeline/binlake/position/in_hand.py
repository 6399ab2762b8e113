"""What a stream, a load, a replay, a backfill or a resync is doing now, in a small file beside the ledger.

Who looks from outside (``binlake status``, ``binlake top``, the console) reads it. Nothing is written for work that
takes less than a second, and one file is replaced every two seconds for work that takes longer. Nothing depends on it
but what people see.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from binlake.position.state_document import StateDocument
from hudilake.clock import monotonic_s, now_ms
from hudilake.errors import LakeError
from hudilake.locking.process_identity import ProcessIdentity, this_process
from hudilake.storage import Storage

_log = logging.getLogger(__name__)

DIRECTORY = "in_hand"
#: Shorter work is not noted; longer work is, so often.
QUIET_S, EVERY_S = 1.0, 2.0
#: A worker on another machine that noted nothing for so long counts as gone.
SILENCE_MS = 60_000
_LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class WorkInHand:
    """Work that has begun and has not ended.

    Args:
        kind: ``batch``, ``load``, ``replay``, ``backfill`` or ``resync``.
        subject: the batch, the table or the place of the files.
        what: the step, in words.
        began_ms, noted_ms: when it began and when it was last noted, in ms since the epoch.
        done, of: how much is done of how much; None if that is not known.
        unit: of these.
        seconds_left: about how long it takes yet; None if nothing is known of it.
        tables: what is done to each table, by its name.
        process: who works.
    """

    kind: str
    subject: str
    what: str
    began_ms: int
    noted_ms: int = 0
    done: int | None = None
    of: int | None = None
    unit: str = ""
    seconds_left: float | None = None
    tables: Mapping[str, str] = field(default_factory=dict)
    process: ProcessIdentity = field(default_factory=this_process)

    @property
    def lives(self) -> bool:
        """Whether its process may still work."""
        if self.process.is_here():
            return not self.process.is_gone()
        return now_ms() - self.noted_ms < SILENCE_MS

    @property
    def seconds(self) -> float:
        """Since it began."""
        return max(0.0, (now_ms() - self.began_ms) / 1000)

    def __str__(self) -> str:
        left = f", about {self.seconds_left:.0f} s left" if self.seconds_left is not None else ""
        counts = f", {self.done:,} of {self.of:,} {self.unit}" if self.done is not None and self.of is not None else ""
        died = "" if self.lives else "; its process is gone"
        return f"{self.kind} {self.subject} for {self.seconds:.0f} s: {self.what}{counts}{left}{died}"


def _document(name: str) -> StateDocument:
    return StateDocument(f"{DIRECTORY}/{name}", "what is in hand", "delete the file; nothing depends on it")


def _parsed(fields: dict[str, Any]) -> WorkInHand:
    process = ProcessIdentity.from_json(fields.pop("process"))
    if process is None:
        raise ValueError("no process")
    return WorkInHand(**fields, process=process)


def works_in_hand(state: Storage) -> list[WorkInHand]:
    """What is in hand for a stream, by kind; that of processes that are gone too. Raises CorruptDataError,
    StorageError."""
    names = sorted(info.path.rpartition("/")[2] for info in state.list(DIRECTORY))
    read = [_document(name).read(state, _parsed) for name in names if name.endswith(".json")]
    return [one for one in read if one is not None]


class WorkNotes:
    """Notes the work in hand, from a thread of its own. A context manager.

    Args:
        state: the stream's state directory.
        kind: of the work.
        ask: what is in hand now; None for nothing.
    """

    def __init__(self, state: Storage, kind: str, ask: Callable[[], WorkInHand | None]) -> None:
        self._state, self._kind, self._ask = state, kind, ask
        self._name = f"{kind}-{this_process().host}-{os.getpid()}.json"
        self._written_s: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_often, name="binlake-in-hand", daemon=True)

    def __enter__(self) -> Self:
        self._try(self._forget_dead)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._written_s is not None:
            self._try(self._forget)

    def look(self) -> None:
        """Note what is in hand, if it is time to. Raises no LakeError."""
        work, now_s = self._ask(), monotonic_s()
        if work is None:
            if self._written_s is not None:
                self._try(self._forget)
        elif work.seconds >= QUIET_S and (self._written_s is None or now_s - self._written_s >= EVERY_S):
            fields = asdict(replace(work, noted_ms=now_ms()))
            self._written_s = now_s
            self._try(lambda: _document(self._name).write(self._state, fields))

    def _look_often(self) -> None:
        while not self._ended.wait(_LOOK_S):
            self.look()

    def _forget(self) -> None:
        self._written_s = None
        self._state.delete(f"{DIRECTORY}/{self._name}")

    def _forget_dead(self) -> None:
        """Delete what runs of this kind left that were killed on this machine."""
        for info in self._state.list(DIRECTORY):
            name = info.path.rpartition("/")[2]
            if name.startswith(f"{self._kind}-"):
                work = _document(name).read(self._state, _parsed)
                if work is not None and not work.lives:
                    self._state.delete(f"{DIRECTORY}/{name}")

    def _try(self, step: Callable[[], object]) -> None:
        try:
            step()
        except LakeError as error:  # the work itself meets what is wrong with the storage
            _log.debug("what is in hand is not noted: %s", error, extra={"event": "in_hand_not_noted"})


class JobProgress:
    """How far a job is, for a ``WorkNotes``: any thread may ask.

    ``kind``, ``unit``: see ``WorkInHand``.
    """

    def __init__(self, kind: str, unit: str) -> None:
        self._kind, self._unit = kind, unit
        self._began_s, self._first = monotonic_s(), 0
        self._work: WorkInHand | None = None

    @property
    def subject(self) -> str | None:
        """What is in hand; None for nothing."""
        return None if self._work is None else self._work.subject

    def begin(self, subject: str, of: int, done: int = 0) -> None:
        """It begins, after ``done`` of an earlier run; ``of``: how much there is in all."""
        self._began_s, self._first = monotonic_s(), done
        self._work = WorkInHand(self._kind, subject, "begins", now_ms(), done=done, of=of, unit=self._unit)

    def reach(self, done: int, what: str) -> None:
        """It has come so far."""
        work = self._work
        if work is None or work.of is None:
            return
        rate = (done - self._first) / max(monotonic_s() - self._began_s, 1e-3)
        left = max(0, work.of - done) / rate if rate > 0 else None
        self._work = replace(work, done=done, what=what, seconds_left=left)

    def end(self) -> None:
        """It has ended."""
        self._work = None

    def work(self) -> WorkInHand | None:
        """What is in hand; None before it begins."""
        return self._work

    @contextlib.contextmanager
    def noted(self, state: Storage) -> Iterator[None]:
        """Within, it is noted beside the ledger."""
        with WorkNotes(state, self._kind, self.work):
            yield


def in_hand_words(works: Sequence[WorkInHand]) -> list[str]:
    """For people: a line for each work, and one for each of its tables."""
    lines = []
    for work in works:
        lines += [f"in hand: {work}", *(f"  {table} {state}" for table, state in work.tables.items())]
    return lines
