"""The lock of a table on an object store: the file of Hudi's StorageBasedLockProvider, so that its writers wait too.

``.hoodie/.locks/table_lock.json`` holds ``expired``, ``validUntil`` (ms since the epoch) and ``owner``; other fields
are ignored by Hudi, and ours adds ``process`` for people, and so that a holder that died on this machine need not be
waited for. The file is never deleted, only replaced on condition that it is still the version that was read, so of
several who find it free, or dead, one gets it.

An answer that says "not that version" may follow upon a write of ours that was done, when the client tried again after
a lost answer. So the file is read again: what bears our owner id is ours. On taking it such a ghost is marked expired
and the attempt counts as failed; on renewing its version is adopted; on freeing it is done or done again. A write
without any answer counts as failed for taking; for renewing it is tried again until the validity ends.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pipeline.clock import new_uuid, now_ms
from pipeline.errors import CorruptDataError
from pipeline.hudi.locking.elapsed import Moment
from pipeline.hudi.locking.process_identity import ProcessIdentity, this_process
from pipeline.hudi.locking.shared_lock import Lease, Refusal, SharedLock, describe_holder
from pipeline.storage.abilities import ConditionalStore, ReplacedError, Version
from pipeline.storage.base import StorageError, StorageNotFoundError

LOCK_PATH = ".hoodie/.locks/table_lock.json"
#: How far the clocks of two machines may be apart, as Hudi has it.
_DRIFT_MS = 500
_RELEASE_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class LockData:
    """What the file says."""

    expired: bool
    valid_until_ms: int
    owner: str
    process: ProcessIdentity | None = None

    def to_bytes(self) -> bytes:
        """As JSON."""
        fields: dict[str, Any] = {"expired": self.expired, "validUntil": self.valid_until_ms, "owner": self.owner}
        return json.dumps(fields | ({"process": self.process.to_json()} if self.process else {})).encode()

    @classmethod
    def from_bytes(cls, data: bytes, place: str) -> LockData:
        """From JSON, without regard to unknown fields. Raises CorruptDataError."""
        try:
            found = json.loads(data)
            expired, until, owner = found["expired"], found["validUntil"], found["owner"]
            if not (type(expired) is bool and type(until) is int and isinstance(owner, str)):
                raise TypeError("a field is of another type")
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptDataError(
                f"the table's lock file is not what Hudi writes: {error!r}",
                do_next="delete it if no writer runs on the table",
                path=place,
            ) from error
        return cls(expired, until, owner, ProcessIdentity.from_json(found.get("process")))

    def is_held(self) -> bool:
        """Whether somebody may hold it."""
        if self.expired or now_ms() > self.valid_until_ms + _DRIFT_MS:
            return False
        return self.process is None or not self.process.is_gone()


@dataclass(eq=False, slots=True)
class _StorageLease(Lease):
    """What we wrote last, and its version."""

    valid_until_ms: int = 0
    version: Version = field(default_factory=lambda: Version(None, None))


class StorageLock(SharedLock):
    """See the head of this module.

    Args:
        storage: at the table's root.
        uri: the table's root.
        wait_s: how long to wait for others.
        validity_s: how long a lock is valid after it was taken or renewed.
        renew_s: how often it is renewed.
    """

    def __init__(
        self,
        storage: ConditionalStore,
        uri: str,
        *,
        wait_s: float = 60.0,
        validity_s: float = 300.0,
        renew_s: float = 30.0,
    ) -> None:
        super().__init__(uri, wait_s, validity_s, renew_s)
        self._storage = storage.within(validity_s / 5)
        self._owner = new_uuid()

    def _try(self) -> Lease | Refusal:
        try:
            found = self._read()
            if found and found[0].is_held():
                return self._held(*found)
            data, since = self._data(), Moment()
            try:
                version = self._write(data, found[1] if found else None)
            except ReplacedError:
                return self._beaten()
            return _StorageLease(self, since, valid_until_ms=data.valid_until_ms, version=version)
        except StorageError as error:
            return Refusal(cause=error)

    def _look(self, lease: Lease) -> str:
        found = self._read()
        return "" if found and self._is_ours(found[0]) else "its file is somebody else's"

    def _extend(self, lease: Lease) -> str:
        assert isinstance(lease, _StorageLease)
        data = self._data()
        try:
            lease.version = self._write(data, lease.version)
        except ReplacedError:
            found = self._read()
            if not found or not self._is_ours(found[0]):
                return "its file is somebody else's"
            lease.version = self._write(data, found[1])
        lease.valid_until_ms = data.valid_until_ms
        return ""

    def _release(self, lease: Lease) -> None:
        assert isinstance(lease, _StorageLease)
        version = lease.version
        for attempt in range(1, _RELEASE_ATTEMPTS + 1):
            try:
                self._expire(lease.valid_until_ms, version)
                return
            except StorageError:
                if attempt == _RELEASE_ATTEMPTS:
                    raise
            found = self._read()
            if not found or not self._is_ours(found[0]):
                return
            version = found[1]

    def _held(self, data: LockData, version: Version) -> Refusal:
        if data.owner == self._owner:
            # We hold nothing: it is a write of ours that had no answer when we took, or freed, the lock.
            self._expire(data.valid_until_ms, version)
        return Refusal(
            describe_holder(data.owner, data.process, None, data.valid_until_ms),
            "wait until it is done; if it is dead, start again after that time",
        )

    def _beaten(self) -> Refusal:
        """Somebody else was first, or a ghost of ours, which is laid."""
        found = self._read()
        if found and found[0].is_held():
            return self._held(*found)
        return Refusal("somebody who has just freed it", "start again")

    def _data(self) -> LockData:
        return LockData(False, now_ms() + round(self._validity_s * 1000), self._owner, this_process())

    def _expire(self, valid_until_ms: int, version: Version) -> None:
        self._write(LockData(True, valid_until_ms, self._owner, this_process()), version)

    def _is_ours(self, data: LockData) -> bool:
        return data.owner == self._owner and not data.expired

    def _read(self) -> tuple[LockData, Version] | None:
        try:
            data, version = self._storage.read_versioned(LOCK_PATH)
        except StorageNotFoundError:
            return None
        return LockData.from_bytes(data, f"{self._uri}/{LOCK_PATH}"), version

    def _write(self, data: LockData, version: Version | None) -> Version:
        return self._storage.replace_if(LOCK_PATH, data.to_bytes(), version)
