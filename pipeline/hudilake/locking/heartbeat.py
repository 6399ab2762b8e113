"""Heartbeats: the writer of each instant, and whether it is alive.

As in Hudi, ``.hoodie/.heartbeat/<instant>`` is rewritten while its writer lives. Hudi leaves it empty and uses only the
time of its last change. Ours also names its writer, so that no process waits for a writer that died on this machine. An
empty file, or one with other content, is judged by its time alone.

The time of change is the store's, and this machine's clock may be hours apart from it. So a heartbeat that seems silent
is compared with the time of a file that is written for it. Where a beat sets a time (HDFS: this machine's), a writer
whose clock is too far apart is refused.

A heartbeat is lost for good if its last beat is too old, or another process deleted or replaced its file: that process
may have rolled the instant back. A beat does not create a deleted file again: if the store can, it only sets the time
of change; otherwise it reads before it writes, with a short gap between the two.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from dataclasses import dataclass, field
from functools import partial

from hudilake.clock import new_uuid, now_ms
from hudilake.errors import ConfigError, LakeError, LostOwnershipError
from hudilake.locking.elapsed import Moment
from hudilake.locking.fenced import unfenced
from hudilake.locking.process_identity import ProcessIdentity, this_process
from hudilake.locking.ticker import Ticker
from hudilake.storage.abilities import Touchable, unsynced
from hudilake.storage.base import Storage, StorageNotFoundError

_log = logging.getLogger(__name__)

HEARTBEAT_PATH = ".hoodie/.heartbeat"
_MAX_INTERVAL_S = 60.0
_BEATS_PER_TIMEOUT = 10


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The content of a heartbeat's file. ``process`` is None for a foreign writer's.

    Attributes:
        owner: the writer's name; empty for a foreign writer.
        process: the process.
        modified_ms: the last beat, by the store's clock.
    """

    owner: str
    process: ProcessIdentity | None
    modified_ms: int

    @property
    def host(self) -> str | None:
        """Its machine."""
        return self.process.host if self.process else None

    @property
    def pid(self) -> int | None:
        """Its process id there."""
        return self.process.pid if self.process else None

    def runs_here(self) -> bool:
        """Whether the process certainly belongs to this machine and still runs."""
        return self.process is not None and self.process.is_here() and not self.process.is_gone()

    def alive(self, now_ms: int, timeout_s: float) -> bool:
        """False if the last beat is too old, or the process belonged to this machine and has ended."""
        if now_ms - self.modified_ms > timeout_s * 1000:
            return False
        return self.process is None or not self.process.is_gone()


@dataclass(slots=True)
class _HeartbeatState:
    """A heartbeat of this object. ``turn`` excludes a beat during the stop of the same heartbeat."""

    body: bytes
    last: Moment
    lost: str = ""
    stopped: bool = False
    turn: threading.Lock = field(default_factory=threading.Lock)


class Heartbeats:
    """The heartbeats of one table's writer. Safe to use from several threads.

    Args:
        storage: at the table's root.
        owner: the writer's name, shown to users.
        timeout_s: how old a last beat may be; Hudi's default is 600.
        directory: the directory of the files.
    """

    def __init__(self, storage: Storage, owner: str, timeout_s: float, directory: str = HEARTBEAT_PATH) -> None:
        self._storage = unsynced(unfenced(storage))
        self._directory = directory
        self._owner = owner
        self._timeout_s = timeout_s
        self._live: dict[str, _HeartbeatState] = {}
        self._ticker = Ticker("binlake-heartbeat", min(_MAX_INTERVAL_S, timeout_s / _BEATS_PER_TIMEOUT))

    def start(self, instant: str) -> None:
        """Start the heartbeat of an instant, before the instant exists.

        Raises AlreadyExistsError if another writer has begun an instant of that time, ConfigError if this machine's
        clock is too far from the store's, StorageError.
        """
        body = json.dumps({"owner": self._owner, "process": this_process().to_json()}).encode()
        beating = _HeartbeatState(body, Moment())
        self._storage.create(self._path(instant), body)
        if not self._live:
            self._check_clock(instant)
        self._live[instant] = beating
        self._ticker.add(instant, partial(self._beat, instant, beating))

    def stop(self, instant: str) -> None:
        """Stop a heartbeat and delete its file; a file that cannot be deleted expires. Does nothing for a foreign
        one."""
        self._ticker.remove(instant)
        beating = self._live.pop(instant, None)
        if beating is None:
            return
        with beating.turn, contextlib.suppress(LakeError):
            beating.stopped = True
            if not beating.lost:
                self._storage.delete(self._path(instant))

    def check(self, instant: str) -> None:
        """Call it before an instant is completed; it makes no storage call. Raises LostOwnershipError if other writers
        may treat the instant as dead."""
        beating = self._live.get(instant)
        lost = "it does not beat" if beating is None else self._is_lost(beating)
        if lost:
            raise LostOwnershipError(
                f"the instant's heartbeat is lost: {lost}, so another writer may have rolled the instant back",
                do_next="begin again with a new instant; if the machine was not paused, check the storage's health",
                table=self._storage.uri,
                instant=instant,
            )

    def beats(self, instant: str) -> bool:
        """Whether this object has a heartbeat of an instant and has not lost it; it makes no storage call."""
        beating = self._live.get(instant)
        return beating is not None and not self._is_lost(beating)

    def find(self, instant: str) -> Heartbeat | None:
        """The heartbeat of an instant, of any writer; None if there is none. Raises StorageError."""
        try:
            body = self._storage.read(self._path(instant))
        except StorageNotFoundError:
            return None
        info = self._storage.stat(self._path(instant))
        return _parse(body, info.modified_ms) if info else None

    def is_dead(self, beat: Heartbeat) -> bool:
        """Whether its process was on this machine and has ended, or it is silent by the store's clock. Raises
        StorageError."""
        if beat.alive(now_ms(), self._timeout_s):
            return False
        if beat.process is not None and beat.process.is_gone():
            return True
        return not beat.alive(self._store_ms(), self._timeout_s)

    def instants(self) -> list[str]:
        """The instants with a heartbeat, of live and of dead writers. Raises StorageError."""
        return sorted(info.path.rpartition("/")[2] for info in self._storage.list(self._directory))

    def discard(self, instant: str) -> None:
        """Delete the heartbeat of a dead writer. Raises StorageError."""
        self._storage.delete(self._path(instant))

    def close(self) -> None:
        """Stop all heartbeats. The files stay: the next writer rolls back the instants that were not stopped."""
        for beating in self._live.values():
            beating.stopped = True
        self._live.clear()
        self._ticker.close()

    def _store_ms(self) -> int:
        """The store's time: of a file that is written now. One that a death leaves is swept like a heartbeat."""
        path = self._path(f"clock-{new_uuid()}")
        self._storage.create(path, b"")
        try:
            info = self._storage.stat(path)
        finally:
            self._storage.delete(path)
        return info.modified_ms if info is not None else now_ms()

    def _check_clock(self, instant: str) -> None:
        """Raise ConfigError if the beats of this machine would seem silent to others, or would long after its death
        seem fresh."""
        info = self._storage.stat(self._path(instant)) if isinstance(self._storage, Touchable) else None
        apart_s = (info.modified_ms - now_ms()) / 1000 if info is not None else 0.0
        if abs(apart_s) > self._timeout_s / 2:
            self._storage.delete(self._path(instant))
            raise ConfigError(
                f"this machine's clock and the store's are {abs(apart_s):.0f} s apart: other writers would take this "
                "one for dead",
                do_next="set the clocks of both machines (NTP)",
                table=self._storage.uri,
            )

    def _path(self, instant: str) -> str:
        return f"{self._directory}/{instant}" if self._directory else instant

    def _beat(self, instant: str, beating: _HeartbeatState) -> None:
        with beating.turn:
            if beating.stopped or self._is_lost(beating):
                return
            moment = Moment()
            try:
                beating.lost = self._refresh(instant, beating.body)
            except LakeError as error:
                fields = {"event": "heartbeat_failed", "path": f"{self._storage.uri}/{self._path(instant)}"}
                _log.warning("a heartbeat failed and will be tried again: %s", error, extra=fields)
                return
            beating.last = moment

    def _refresh(self, instant: str, body: bytes) -> str:
        """One beat; returns the reason if the heartbeat is lost. Raises LakeError for a beat that failed."""
        path = self._path(instant)
        try:
            if self._storage.read(path) != body:
                return "its file is somebody else's"
        except StorageNotFoundError:
            return "its file was deleted"
        if not isinstance(self._storage, Touchable):
            self._storage.write(path, body)
        elif not self._storage.touch(path):
            return "its file was deleted"
        return ""

    def _is_lost(self, beating: _HeartbeatState) -> str:
        if not beating.lost and (age := beating.last.age_s()) > self._timeout_s:
            beating.lost = f"its last beat was {age:.0f} s ago"
        return beating.lost


def _parse(body: bytes, modified_ms: int) -> Heartbeat:
    try:
        fields = json.loads(body)
        return Heartbeat(str(fields["owner"]), ProcessIdentity.from_json(fields.get("process")), modified_ms)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Heartbeat("", None, modified_ms)
