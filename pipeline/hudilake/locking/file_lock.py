"""The lock of a table on local disk or HDFS: the file that Hudi's FileSystemBasedLockProvider makes.

The process that created ``.hoodie/lock`` holds the lock, and releases it by deleting the file. Hudi's file is empty
(measured: its code writes a text that never arrives), is never renewed, and expires by its time of change after the
minutes that its writer is configured with, or never. Ours names its holder, and its time of change is renewed.

Taking over. A lock of ours is dead if its process is certainly gone, or its time of change is older than the validity
in it and this process has seen it unchanged for the whole validity by its own clock: the clocks of two machines may be
hours apart, and a living holder renews its lock. A lock that does not name its holder is dead in the same way after
``foreign_expiry_s``, if that is set. Deleting a dead lock is
dangerous: another process may have deleted it a moment ago, and the present file may belong to a live holder. So it is
deleted only under a claim, a file in ``.hoodie/.locks`` created exclusively, whose name is made from the dead lock's
bytes and time of change:

1. create the claim; if it exists, its holder is deleting the lock: wait; if that holder is dead too, create the claim
   of the next number;
2. read the lock again under the claim; it must be the dead lock itself (same bytes and time of change);
3. delete it, and only then the claims;
4. create a new lock as in the normal case.

Two processes that hold the claim of the same dead lock one after the other cannot both delete it: the second does not
find that lock in step 2. The next number of a claim is used only if its holder is gone or silent for the whole
validity, and a holder that has slept for half of it between 1 and 3 gives up.

No protocol on such a store can exclude a sleep of that length within step 3 or between the two calls of a release, and
Hudi's own deletes (its ``unlock`` and ``close`` delete the file of any holder). ``check`` covers these cases: it reads
the lock back before an instant is completed. On local disk Hudi's create first checks for the file and then opens it,
so if a Hudi writer and ours start in the same moment, both may go on; ours finds its lock emptied and stops.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import dataclass

from hudilake.clock import new_uuid, now_ms
from hudilake.errors import LakeError
from hudilake.locking.elapsed import Moment, Watch
from hudilake.locking.process_identity import ProcessIdentity, this_process
from hudilake.locking.shared_lock import Lease, LockRefusal, SharedLock, describe_holder
from hudilake.storage.abilities import Touchable, unsynced
from hudilake.storage.base import AlreadyExistsError, OutcomeUnknownError, Storage, StorageNotFoundError

LOCK_PATH = ".hoodie/lock"
_CLAIMS_PATH = ".hoodie/.locks"
_MAX_CLAIMS = 100


@dataclass(eq=False, slots=True)
class _FileLease(Lease):
    """The bytes of this process's lock file: no other lock has the same."""

    body: bytes = b""


@dataclass(frozen=True, slots=True)
class FoundLock:
    """A lock or a claim on storage, as ``find_lock`` reads it. Without ``owner`` it is a foreign one."""

    body: bytes
    modified_ms: int
    owner: str = ""
    process: ProcessIdentity | None = None
    since_ms: int | None = None
    validity_s: float = 0.0

    def until_ms(self, foreign_expiry_s: float) -> int | None:
        """The time at which it expires; None for never."""
        validity_s = self.validity_s if self.owner else foreign_expiry_s
        return self.modified_ms + round(validity_s * 1000) if validity_s else None

    def has_expired(self, foreign_expiry_s: float) -> bool:
        """Whether it has expired, if its holder's clock is right."""
        until = self.until_ms(foreign_expiry_s)
        return until is not None and now_ms() > until

    @property
    def is_abandoned(self) -> bool:
        """Whether its process was on this machine and has ended."""
        return self.process is not None and self.process.is_gone()

    def is_dead(self, watch: Watch, foreign_expiry_s: float) -> bool:
        """Whether no process can still hold it. ``watch``: how long this process has seen it."""
        silent_s = watch.unchanged_s(self.digest)
        if self.is_abandoned:
            return True
        return self.has_expired(foreign_expiry_s) and silent_s >= (self.validity_s or foreign_expiry_s)

    @property
    def digest(self) -> str:
        """A name for exactly this state of the file."""
        return hashlib.sha256(b"%d %s" % (self.modified_ms, self.body)).hexdigest()[:32]


class FileLock(SharedLock):
    """See the docstring of this module.

    Args:
        storage: at the table's root; any store with exclusive create and delete.
        wait_s: how long to wait for others.
        validity_s: how long others wait for this process once it is silent.
        renew_s: how often the file's time of change is renewed. A Hudi writer that lets locks expire counts in whole
            minutes: less than one.
        foreign_expiry_s: the age at which a lock without a holder's name is dead; 0 for never, as Hudi's default.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        wait_s: float = 60.0,
        validity_s: float = 300.0,
        renew_s: float = 30.0,
        foreign_expiry_s: float = 0.0,
    ) -> None:
        super().__init__(storage.uri, wait_s, validity_s, renew_s)
        self._storage = unsynced(storage)
        self._foreign_expiry_s = foreign_expiry_s
        self._watch = Watch()
        self._claims: dict[str, Watch] = {}

    def _try(self) -> Lease | LockRefusal:
        body, since = self._new_body(), Moment()
        try:
            self._storage.create(LOCK_PATH, body)
        except AlreadyExistsError:
            return self._refused()
        except OutcomeUnknownError:
            if not self._holds(body):
                raise
        return _FileLease(self, since, body=body)

    def _look(self, lease: Lease) -> str:
        assert isinstance(lease, _FileLease)
        return "" if self._holds(lease.body) else "its file was deleted or replaced by somebody else"

    def _extend(self, lease: Lease) -> str:
        assert isinstance(lease, _FileLease)
        if lost := self._look(lease):
            return lost
        if not isinstance(self._storage, Touchable):
            self._storage.write(LOCK_PATH, lease.body)
        elif not self._storage.touch(LOCK_PATH):
            return "its file was deleted by somebody else"
        return ""

    def _release(self, lease: Lease) -> None:
        assert isinstance(lease, _FileLease)
        if self._holds(lease.body):
            self._storage.delete(LOCK_PATH)

    def _holds(self, body: bytes) -> bool:
        try:
            return self._storage.read(LOCK_PATH) == body
        except StorageNotFoundError:
            return False

    def _new_body(self) -> bytes:
        fields = {"owner": new_uuid(), "process": this_process().to_json(), "since": now_ms()}
        return json.dumps({**fields, "validity_s": self._validity_s}).encode()

    def _refused(self) -> Lease | LockRefusal:
        lock = find_lock(self._storage)
        if lock is None:
            return LockRefusal("somebody who has just freed it", "start again")
        if lock.is_dead(self._watch, self._foreign_expiry_s) and self._remove(lock):
            return self._try()
        silent_s = self._watch.unchanged_s(lock.digest) if lock.has_expired(self._foreign_expiry_s) else None
        until = lock.until_ms(self._foreign_expiry_s)
        if until is None:
            return LockRefusal(
                f"a writer that does not say who it is (Hudi's own), by {self._uri}/{LOCK_PATH}",
                "wait until it is done; delete the file if no Hudi writer runs on the table",
            )
        return LockRefusal(
            describe_holder(lock.owner or "Hudi's own", lock.process, lock.since_ms, until),
            "wait until it is done; if it is dead, start again after that time",
            silent_s=silent_s,
        )

    def _remove(self, dead: FoundLock) -> bool:
        """Delete a dead lock, as the docstring of this module says; whether this call deleted it."""
        claims: list[str] = []
        for number in range(_MAX_CLAIMS):
            claims.append(f"{_CLAIMS_PATH}/{dead.digest}.{number}")
            began = Moment()
            try:
                self._storage.create(claims[-1], self._new_body())
                break
            except AlreadyExistsError:
                claim = find_lock(self._storage, claims[-1])
                watch = self._claims.setdefault(claims[-1], Watch())
                if claim is None or not claim.is_dead(watch, self._validity_s):
                    return False
        else:
            return False
        try:
            still = find_lock(self._storage) == dead and began.age_s() < self._validity_s / 2
            return still and self._storage.delete(LOCK_PATH)
        finally:
            for claimed in claims:
                with contextlib.suppress(LakeError):
                    self._storage.delete(claimed)


def find_lock(storage: Storage, path: str = LOCK_PATH) -> FoundLock | None:
    """The lock of the table at ``storage``, or a claim to one; None if there is none. Raises StorageError."""
    try:
        body = storage.read(path)
    except StorageNotFoundError:
        return None
    info = storage.stat(path)
    return _parse(body, info.modified_ms) if info else None


def _parse(body: bytes, modified_ms: int) -> FoundLock:
    try:
        fields = json.loads(body)
        process = ProcessIdentity.from_json(fields["process"])
        return FoundLock(
            body, modified_ms, str(fields["owner"]), process, int(fields["since"]), float(fields["validity_s"])
        )
    except (ValueError, KeyError, TypeError):
        return FoundLock(body, modified_ms)
