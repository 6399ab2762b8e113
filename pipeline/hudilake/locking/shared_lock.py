"""The common part of the locks that exclude other processes: the wait, the renewal, the last check.

A thread of this process first acquires the process's lock of the table. So only one thread at a time calls the store,
and the thread that holds the lock may enter again through any object.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from types import TracebackType

from hudilake.errors import LakeError
from hudilake.locking.base import LockHeldError, LostLockError
from hudilake.locking.elapsed import Moment
from hudilake.locking.process_identity import ProcessIdentity
from hudilake.locking.process_lock import ProcessLock
from hudilake.locking.ticker import Ticker
from hudilake.storage.base import StorageError

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.005, 0.5
#: The part of the validity that must remain for a completing write, or a renewal, to reach the store.
_MARGIN = 0.1
#: The part of the wait for which a lock must have been silent, to be waited for longer.
_SILENT = 0.9


@dataclass(eq=False, slots=True)
class Lease:
    """A lock that was acquired at the store.

    Attributes:
        lock: the lock object that acquired it.
        since: the moment before the call that acquired or last renewed it.
        lost: why it was lost; never cleared.
        turn: excludes a renewal during the release.
    """

    lock: SharedLock
    since: Moment
    lost: str = ""
    released: bool = False
    turn: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class LockRefusal:
    """Why an attempt did not get the lock: another process holds it, or the store gave no answer.

    ``silent_s``: of a lock that has expired by the clock of its holder, how long this process has seen it unchanged;
    None for any other. It is taken over when that has lasted for the whole validity.
    """

    holder: str = ""
    do_next: str = ""
    cause: StorageError | None = None
    silent_s: float | None = None


class SharedLock(ABC):
    """See the docstring of this module. Subclasses implement the store's part.

    Args:
        uri: the table's root.
        wait_s: how long to wait for others.
        validity_s: how long others treat it as held after the last renewal.
        renew_s: how often it is renewed.
    """

    shared = True
    others_held = True

    def __init__(self, uri: str, wait_s: float, validity_s: float, renew_s: float) -> None:
        self._uri = uri
        self._wait_s = wait_s
        self._validity_s = validity_s
        self._local = ProcessLock(uri, wait_s)
        self._ticker = Ticker("binlake-lock", renew_s)

    def __enter__(self) -> SharedLock:
        """Acquire it. Raises LockHeldError (with holder and expiry) after the time to wait, StorageError."""
        began = Moment()
        self._local.__enter__()
        if self._local.depth == 1:
            try:
                self._local.held = self._wait(began)
            except BaseException:
                self._local.__exit__(None, None, None)
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release it; never raises: a lock that cannot be released ends with its validity."""
        try:
            if self._local.depth == 1 and isinstance(lease := self._local.held, Lease):
                self._give_back(lease)
        finally:
            self._local.__exit__(kind, error, trace)

    def check(self) -> None:
        """Raises LostLockError unless the calling thread holds it, it is valid, and the store confirms it;
        StorageError if the store does not answer."""
        self._local.check()
        lease = self._local.held
        if not isinstance(lease, Lease):
            raise self._lost("another kind of lock is held")
        lock = lease.lock
        if lost := lock._is_lost(lease, lock._validity_s * (1 - _MARGIN)):
            raise self._lost(lost)
        if reason := lock._look(lease):
            lease.lost = reason
            raise self._lost(reason)

    @abstractmethod
    def _try(self) -> Lease | LockRefusal:
        """One attempt. Raises StorageError for an error after which a retry is useless."""

    @abstractmethod
    def _look(self, lease: Lease) -> str:
        """Why it is lost according to the store; empty if it is still ours. Raises StorageError."""

    @abstractmethod
    def _extend(self, lease: Lease) -> str:
        """Renew it at the store; returns the reason if it is lost. Raises StorageError: the caller tries again in
        time."""

    @abstractmethod
    def _release(self, lease: Lease) -> None:
        """Release it at the store, if it is still ours. Raises StorageError."""

    def _wait(self, began: Moment) -> Lease:
        pause = _FIRST_PAUSE_S
        while True:
            got = self._try()
            if isinstance(got, Lease):
                self._ticker.add(got, partial(self._renew, got))
                return got
            remaining_s = self._wait_s - began.age_s()
            if remaining_s <= 0 and not _may_be_dead(got, began.age_s()):
                raise got.cause or LockHeldError(
                    f"the table's lock is held by {got.holder}", do_next=got.do_next, table=self._uri
                )
            left_s = remaining_s if remaining_s > 0 else pause
            time.sleep(min(left_s, pause * random.uniform(0.5, 1.0)))  # noqa: S311 - jitter
            pause = min(2 * pause, _LAST_PAUSE_S)

    def _renew(self, lease: Lease) -> None:
        with lease.turn:
            # In the last moment others may find it dead, and delete or replace what they have found.
            if lease.released or self._is_lost(lease, self._validity_s * (1 - _MARGIN)):
                return
            moment = Moment()
            try:
                lease.lost = self._extend(lease)
            except LakeError as error:
                fields = {"event": "lock_not_renewed", "table": self._uri}
                _log.warning("the lock was not renewed; this will be tried again: %s", error, extra=fields)
                return
            lease.since = moment

    def _give_back(self, lease: Lease) -> None:
        lease.lock._ticker.remove(lease)
        with lease.turn:
            lease.released = True
            if not self._is_lost(lease, lease.lock._validity_s * (1 - _MARGIN)):
                try:
                    lease.lock._release(lease)
                except LakeError as error:
                    fields = {"event": "lock_not_released", "table": lease.lock._uri}
                    _log.warning("the lock was not released; it expires: %s", error, extra=fields)

    @staticmethod
    def _is_lost(lease: Lease, validity_s: float) -> str:
        if not lease.lost and (age := lease.since.age_s()) > validity_s:
            lease.lost = f"it was last renewed {age:.1f} s ago, and others may take it after {validity_s:.1f} s"
        return lease.lost

    def _lost(self, why: str) -> LostLockError:
        return LostLockError(
            f"the table's lock was lost: {why}",
            do_next="start again: uncompleted instants are rolled back; if the process was not paused, check the "
            "storage's health and this machine's clock",
            table=self._uri,
        )


def _may_be_dead(refusal: LockRefusal, waited_s: float) -> bool:
    """Whether the lock has not been renewed while this process waited for it, so that it waits until that is certain:
    for the rest of the validity."""
    return refusal.silent_s is not None and refusal.silent_s >= _SILENT * waited_s


def describe_holder(owner: str, process: ProcessIdentity | None, since_ms: int | None, until_ms: int) -> str:
    """The holder of a lock, since when and until when, as text for users."""
    who = f"process {process.pid} on {process.host}" if process else f"another writer ({owner})"
    since = f" since {_moment(since_ms)}" if since_ms is not None else ""
    return f"{who}{since}, valid until {_moment(until_ms)} unless it is renewed"


def _moment(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
