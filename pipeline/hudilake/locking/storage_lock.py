"""The lock of a table on an object store: the file of Hudi's StorageBasedLockProvider, so that its writers wait too.

``.hoodie/.locks/table_lock.json`` holds ``expired``, ``validUntil`` (ms since the epoch) and ``owner``; other fields
are ignored by Hudi. Ours adds ``process``, for users, and so that no process waits for a holder that died on this
machine. ``validUntil`` is by the holder's clock, which may be hours apart from ours. So a lock that has expired is
taken over only when this process has seen it unchanged for the whole validity, by its own clock: a living holder renews
it.
The file is never deleted. It is only replaced if it still has the version that was read, so if several
processes find it free or dead, one gets it.

The answer "not that version" is also given for a write of ours that was done, if its answer was lost and the client
tried again. So the file is read again: a file with our owner id is ours. When the lock is acquired, such a file is
marked expired and the attempt counts as failed; on renewal its version is adopted; on release the write is done or
repeated. A write without any answer counts as a failed attempt to acquire; a renewal is tried again until the validity
ends.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hudilake.clock import new_uuid, now_ms
from hudilake.errors import CorruptDataError
from hudilake.locking.elapsed import Moment, Watch
from hudilake.locking.process_identity import ProcessIdentity, this_process
from hudilake.locking.shared_lock import Lease, LockRefusal, SharedLock, describe_holder
from hudilake.storage.abilities import ConditionalStore, ReplacedError, Version
from hudilake.storage.base import StorageError, StorageNotFoundError

LOCK_PATH = ".hoodie/.locks/table_lock.json"
#: The largest difference between the clocks of two machines, as in Hudi.
_DRIFT_MS = 500
_RELEASE_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class LockData:
    """The content of the lock file."""

    expired: bool
    valid_until_ms: int
    owner: str
    process: ProcessIdentity | None = None

    def to_bytes(self) -> bytes:
        """Returns the bytes of the lock file, a JSON object; without ``process`` if it is unknown."""
        fields: dict[str, Any] = {"expired": self.expired, "validUntil": self.valid_until_ms, "owner": self.owner}
        return json.dumps(fields | ({"process": self.process.to_json()} if self.process else {})).encode()

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> LockData:
        """From JSON, without regard to unknown fields. Raises CorruptDataError."""
        try:
            fields = json.loads(data)
            expired, until, owner = fields["expired"], fields["validUntil"], fields["owner"]
            if not (type(expired) is bool and type(until) is int and isinstance(owner, str)):
                raise TypeError("a field has another type")
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptDataError(
                f"the table's lock file has not the form that Hudi writes: {error!r}",
                do_next="delete the file if no writer runs on the table, then start again",
                path=path,
            ) from error
        return cls(expired, until, owner, ProcessIdentity.from_json(fields.get("process")))

    @property
    def is_free(self) -> bool:
        """Whether it was released, or its process was on this machine and has ended."""
        return self.expired or (self.process is not None and self.process.is_gone())

    def has_expired(self) -> bool:
        """Whether it has expired, if its holder's clock is right."""
        return now_ms() > self.valid_until_ms + _DRIFT_MS


@dataclass(eq=False, slots=True)
class _StorageLease(Lease):
    """The last content that this object wrote, and its version."""

    valid_until_ms: int = 0
    version: Version = field(default_factory=lambda: Version(None, None))


class StorageLock(SharedLock):
    """See the docstring of this module.

    Args:
        storage: at the table's root.
        uri: the table's root.
        wait_s: how long to wait for others.
        validity_s: how long a lock is valid after it was acquired or renewed.
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
        self._watch = Watch()

    def _try(self) -> Lease | LockRefusal:
        try:
            current = self._read()
            if current and self._is_held(current[0]):
                return self._held(*current)
            data, since = self._data(), Moment()
            try:
                version = self._write(data, current[1] if current else None)
            except ReplacedError:
                return self._beaten()
            return _StorageLease(self, since, valid_until_ms=data.valid_until_ms, version=version)
        except StorageError as error:
            return LockRefusal(cause=error)

    def _look(self, lease: Lease) -> str:
        current = self._read()
        return "" if current and self._is_ours(current[0]) else "another process has replaced its file"

    def _extend(self, lease: Lease) -> str:
        assert isinstance(lease, _StorageLease)
        data = self._data()
        try:
            lease.version = self._write(data, lease.version)
        except ReplacedError:
            current = self._read()
            if not current or not self._is_ours(current[0]):
                return "another process has replaced its file"
            lease.version = self._write(data, current[1])
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
            current = self._read()
            if not current or not self._is_ours(current[0]):
                return
            version = current[1]

    def _held(self, data: LockData, version: Version) -> LockRefusal:
        if data.owner == self._owner:
            # This object holds no lease: the file is an unanswered write of its own from an acquire or a release.
            self._expire(data.valid_until_ms, version)
        return LockRefusal(
            describe_holder(data.owner, data.process, None, data.valid_until_ms),
            "wait until it is done; if it is dead, start again after that time",
            silent_s=self._watch.unchanged_s(data) if data.has_expired() else None,
        )

    def _is_held(self, data: LockData) -> bool:
        """Whether a process may hold it: it is not free, and has not been silent for the whole validity."""
        silent_s = self._watch.unchanged_s(data)
        return not data.is_free and not (data.has_expired() and silent_s >= self._validity_s)

    def _beaten(self) -> LockRefusal:
        """Another process was first, or the file is an unanswered write of ours, which is marked expired."""
        current = self._read()
        if current and self._is_held(current[0]):
            return self._held(*current)
        return LockRefusal("somebody who has just freed it", "start again")

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
