"""Writes entries of a log: proposes on the newest state, appends, and proposes again if another writer was first."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar
from uuid import UUID

from hudilake.clock import monotonic_s, new_uuid, now_ms
from hudilake.errors import LakeError
from hudilake.storage.base import StorageError
from lakemetastore.log.errors import CrowdedError, LogOutcomeUnknownError
from lakemetastore.log.fold import Fold, VersionedChange
from lakemetastore.log.pace import Pace
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.records import ChangeRecord, EntryRecord, frame
from lakemetastore.log.replica import LogView, Replica
from lakemetastore.log.requests import Request
from lakemetastore.log.stores.base import LogStore

S = TypeVar("S")
E = TypeVar("E")

_LONGEST_PAUSE_S: Final = 1.0
_READ_BACKS: Final = 6
#: After a turn that did not come a writer tries so long without.
_WITHOUT_TURN_S: Final = 10.0


@dataclass
class _Draft(Generic[S, E]):
    """An entry that is not written yet: what requests propose for a view, one after another."""

    view: LogView[S]
    state: S
    parts: list[ChangeRecord] = field(default_factory=list)
    outcomes: list[tuple[Request[S, E], BaseException | None]] = field(default_factory=list)

    def record(self, writer: bytes) -> EntryRecord:
        """Returns the record of the entry, with a new id, the time in ms and the parts so far."""
        return EntryRecord(_new_id(), self.view.last_id, writer, now_ms(), tuple(self.parts))


class Writer(Generic[S, E]):
    """Writes the entries of one process, one after another (see ``requests.Requests``).

    Args:
        store: of the log.
        log: its name.
        fold: how its changes become a state.
        replica: what the process has of it.
        policy: of the log.
    """

    def __init__(self, store: LogStore, log: str, fold: Fold[S, E], replica: Replica[S, E], policy: LogPolicy) -> None:
        self._store, self._name, self._fold, self._replica, self._policy = store, log, fold, replica, policy
        self._id = _new_id()
        self._pace = Pace(self._id)
        self._no_turn_until_s = 0.0

    def write(self, requests: Sequence[Request[S, E]]) -> None:
        """Settle requests, as one entry if any of them changes something. Errors go into the requests."""
        try:
            begun = monotonic_s()
            patience_s = self._policy.turn_timeout_s if begun >= self._no_turn_until_s else 0.0
            with self._store.turn(self._name, patience_s) as mine:
                if not mine and patience_s and monotonic_s() - begun >= patience_s:
                    # Who has the turn is suspended, or the queue is too long.
                    self._no_turn_until_s = monotonic_s() + _WITHOUT_TURN_S
                self._write(requests, mine)
        except LakeError as error:
            for request in requests:
                if not request.is_settled:
                    request.error = error

    def _write(self, requests: Sequence[Request[S, E]], mine: bool) -> None:
        deadline = monotonic_s() + self._policy.commit_timeout_s
        lost = 0
        if not mine:
            self._pace.rest()
        while True:
            begun = monotonic_s()
            draft = self._draft(self._replica.refresh(), requests)
            after = self._append(draft, deadline) if draft.parts else draft.view
            if after is not None:
                if draft.parts:
                    self._pace.won(after.records, monotonic_s() - begun)
                for request, error in draft.outcomes:
                    request.view, request.error = (after, None) if error is None else (None, error)
                return
            if monotonic_s() > deadline:
                raise CrowdedError(
                    "other writers were first each time",
                    do_next="try again later, with fewer writers of one log",
                    log=self._name,
                    attempts=lost,
                )
            lost += 1
            if not mine:
                self._pace.lost(lost)

    def _draft(self, view: LogView[S], requests: Sequence[Request[S, E]]) -> _Draft[S, E]:
        draft: _Draft[S, E] = _Draft(view, view.state)
        for request in requests:
            try:
                self._add(draft, request)
            except Exception as error:  # a refusal, or a mistake of the one who proposes: it is theirs
                draft.outcomes.append((request, error))
            else:
                draft.outcomes.append((request, None))
        return draft

    def _add(self, draft: _Draft[S, E], request: Request[S, E]) -> None:
        """Add what a request proposes, on the state that the requests before it make."""
        view = draft.view if not draft.parts else draft.view.with_pending(draft.state, draft.parts)
        change = request.propose(view)
        if change is not None:
            part = ChangeRecord(self._fold.encode(change), request.intent)
            draft.state = self._fold.apply(draft.state, [VersionedChange(draft.view.version + 1, change)])
            draft.parts.append(part)

    def _append(self, draft: _Draft[S, E], deadline: float) -> LogView[S] | None:
        """The view with the draft's entry; None if another writer was first."""
        record = draft.record(self._id)
        data = frame(record)
        if not self._is_appended(draft.view.version + 1, record, data, deadline):
            return None
        after = draft.view.after(draft.state, [record], len(data))
        self._replica.advance(draft.view, after)
        return after

    def _is_appended(self, version: int, record: EntryRecord, data: bytes, deadline: float) -> bool:
        """Whether the entry is in the log. After a write without an answer the log is read: if it has the version, it
        shows whose entry that is; if not, the write is done again, so that a late one finds its place taken."""
        doubt: StorageError | None = None
        for attempt in range(_READ_BACKS):
            try:
                if doubt is not None:
                    view = self._replica.refresh()
                    if view.version >= version:
                        owner = view.id_of(version)
                        if owner is None:
                            break
                        return owner == record.id
                won = self._store.append(self._name, version, data)
                if won or doubt is None:
                    return won
            except StorageError as error:
                doubt = error
            if monotonic_s() > deadline:
                break
            time.sleep(min(_LONGEST_PAUSE_S, 0.02 * 2**attempt) * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
        raise LogOutcomeUnknownError(
            f"it cannot be told whether a change was written: {doubt}",
            do_next="when the store answers, look at the state, and try again what it lacks",
            log=self._name,
            version=version,
        ) from doubt


def _new_id() -> bytes:
    return UUID(new_uuid()).bytes[:8]
