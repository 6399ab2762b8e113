"""A log with its state: readers get the state at a version, writers propose changes to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from hudilake.commit.intent import WHOLE_TABLE, Intent, conflicts
from hudilake.errors import BadInputError
from hudilake.policies import Conflicts
from hudilake.storage.base import StorageError
from lakemetastore.log.errors import ConflictError
from lakemetastore.log.fold import Fold, VersionedChange
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.records import ChangeRecord, IntentRecord
from lakemetastore.log.replica import LogView, Replica
from lakemetastore.log.requests import Request, Requests
from lakemetastore.log.snapshots import Snapshots
from lakemetastore.log.stores.base import LogStore, TrimmedError
from lakemetastore.log.token import Token
from lakemetastore.log.writer import Writer

S = TypeVar("S")
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class At(Generic[S]):
    """The state of a log at a version; 0: there is no such log."""

    log: str
    version: int
    state: S

    @property
    def token(self) -> Token:
        """Who has it reads at least this version."""
        return Token(self.log, self.version)


class VersionedLog(Generic[S, E]):
    """A log. One object serves all threads of a process.

    Args:
        store: of the log.
        name: its name.
        fold: how its changes become a state.
        policy: how it is kept.
    """

    def __init__(self, store: LogStore, name: str, fold: Fold[S, E], policy: LogPolicy | None = None) -> None:
        self.name, self.store = name, store
        self._policy = policy or LogPolicy()
        self._replica = Replica(store, name, fold)
        self._snapshots = Snapshots(store, name, fold, self._policy)
        writer = Writer(store, name, fold, self._replica, self._policy)
        self._requests = Requests(writer.write, self._policy.group)

    def state(self, at_least: Token | None = None) -> At[S]:
        """The state, as of a moment after the call, or at most ``check_after_ms`` before it.

        Args:
            at_least: of a commit that the state must have; the store is asked if it is not known here yet.

        Raises:
            StorageError: the store does not answer, or has not that version.
            CorruptDataError: an entry or a snapshot is damaged.
            BadInputError: the token is of another log.
        """
        wanted = self._version_of(at_least)
        view = self._replica.view
        if view.version < wanted or self._replica.age_s() * 1000 >= self._policy.check_after_ms:
            view = self._replica.refresh()
        if view.version < wanted:
            raise StorageError(
                "the store has not the version of the token",
                do_next="ask again without the token; was the store put back to an older state, or the log deleted?",
                log=self.name,
                version=view.version,
                wanted=wanted,
            )
        return At(self.name, view.version, view.state)

    def newest(self) -> At[S]:
        """The state as of a moment after the call, whatever ``check_after_ms`` says. Raises as ``state``."""
        view = self._replica.refresh()
        return At(self.name, view.version, view.state)

    def known(self) -> At[S]:
        """The state as this process has it, without asking the store."""
        view = self._replica.view
        return At(self.name, view.version, view.state)

    def commit(self, propose: Callable[[S], E | None], intent: Intent | None = None) -> At[S]:
        """Make a change; on return it is durable.

        Args:
            propose: the change for a state, None if there is nothing to change. It may raise to refuse. It is called
                again on a newer state if another writer was first, in any thread; it must not commit to this log.
            intent: what the change concerns, for writers that ``append``; None for the whole.

        Returns:
            The state with the change, maybe with changes of others.

        Raises:
            CrowdedError: others were first for ``commit_timeout_s``; nothing was written.
            LogOutcomeUnknownError: the change may have been written.
            StorageError, CorruptDataError: as ``state``; nothing was written.
        """
        return self._settle(Request(lambda view: propose(view.state), IntentRecord.of(intent) if intent else None))

    def append(self, base_version: int, change: E, intent: Intent, policy: Conflicts = "column") -> At[S]:
        """Make a change that was worked out for a version, if no entry since then is in its way.

        Args:
            base_version: the version that the change was made for.
            change: it is written as it is, whatever came between.
            intent: what it concerns. An entry that was written without an intent concerns the whole.
            policy: which changes are in the way of each other (see ``hudilake.commit.intent.conflicts``).

        Raises:
            ConflictError: an entry in between is in the way, or is forgotten, so that this cannot be known.
            CrowdedError, LogOutcomeUnknownError, StorageError, CorruptDataError: as ``commit``.
        """

        def propose(view: LogView[S]) -> E:
            for version, others in self._intents(base_version, view):
                conflict = conflicts(intent, others, policy)
                if conflict is not None:
                    raise ConflictError(
                        f"version {version} of the log changed what this change is about: {conflict}",
                        do_next="read the newest state and work the change out again",
                        log=self.name,
                        base=base_version,
                        rival=version,
                    )
            return change

        return self._settle(Request(propose, IntentRecord.of(intent)))

    def changes(self, after: int, limit: int | None = None) -> list[VersionedChange[E]]:
        """The changes of the versions after one, of at most ``limit`` versions. Raises TrimmedError if one is gone."""
        entries = self._replica.entries(after, limit)
        numbered = enumerate(entries, start=after + 1)
        return [change for version, record in numbered for change in self._replica.changes(version, record)]

    def snapshot(self) -> None:
        """Write a snapshot of the newest version now, and trim the log. Raises StorageError."""
        view = self._replica.refresh()
        if view.version:
            self._snapshots.write(view)

    def delete(self) -> None:
        """Delete the log. Its name is not used again. Raises StorageError."""
        self._snapshots.wait()
        self.store.delete(self.name)

    def close(self) -> None:
        """Wait for the snapshot that is being written, if one is."""
        self._snapshots.wait()

    def _settle(self, request: Request[S, E]) -> At[S]:
        view = self._requests.settle(request)
        self._snapshots.committed(view)
        return At(self.name, view.version, view.state)

    def _intents(self, base: int, view: LogView[S]) -> list[tuple[int, list[Intent]]]:
        """What the entries behind a version concern, by version."""
        pending = [(view.version + 1, [_intent_of(part) for part in view.pending])]
        count = view.version - base
        if count <= 0:
            return pending
        records = list(view.records[-count:])
        if len(records) < count:
            try:
                records = self._replica.entries(base, count)
            except TrimmedError as error:
                raise ConflictError(
                    "the entries since the version of the change are forgotten",
                    do_next="read the newest state and work the change out again",
                    log=self.name,
                    base=base,
                ) from error
        between = enumerate(records, start=base + 1)
        return [(version, [_intent_of(part) for part in record.changes]) for version, record in between] + pending

    def _version_of(self, token: Token | None) -> int:
        if token is None:
            return 0
        if token.log != self.name:
            raise BadInputError("the token is of another log", do_next="send it where it came from", token=str(token))
        return token.version


def _intent_of(part: ChangeRecord) -> Intent:
    return WHOLE_TABLE if part.intent is None else part.intent.intent()
