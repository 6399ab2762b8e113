"""Heartbeats: who works on which instant, and whether they still live.

As in Hudi, ``.hoodie/.heartbeat/<instant>`` is written over and over while its writer lives, and only the time of its
last change counts for Hudi, which leaves it empty. Ours says in addition who writes it, so that a writer that died on
this machine need not be waited for. A file that is empty, or holds something else, is judged by its time alone.

A heartbeat is lost, and stays so, once its last beat is too old or its file was deleted or taken by somebody else: they
may have rolled the instant back. A beat does not bring a deleted file back: where the store can, it only sets the time
of change; elsewhere it reads before it writes, which leaves a moment.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from dataclasses import dataclass, field
from functools import partial

from pipeline.errors import BinlakeError, LostOwnershipError
from pipeline.hudi.locking.elapsed import Moment
from pipeline.hudi.locking.fenced import unfenced
from pipeline.hudi.locking.process_identity import ProcessIdentity, this_process
from pipeline.hudi.locking.ticker import Ticker
from pipeline.storage.abilities import Touchable, unsynced
from pipeline.storage.base import Storage, StorageNotFoundError

_log = logging.getLogger(__name__)

HEARTBEAT_PATH = ".hoodie/.heartbeat"
_MAX_INTERVAL_S = 60.0
_BEATS_PER_TIMEOUT = 10


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a heartbeat's file says. ``process`` is None for a foreign writer's.

    Attributes:
        owner: who writes it; empty for a foreign writer.
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

    @property
    def process_started(self) -> int | None:
        """When that process started, in its kernel's ticks."""
        return self.process.started if self.process else None

    def runs_here(self) -> bool:
        """Whether the process is one of this machine for certain, and still there."""
        return self.process is not None and self.process.is_here() and not self.process.is_gone()

    def alive(self, now_ms: int, timeout_s: float) -> bool:
        """False if the last beat is too old, or the process ran on this machine and is gone."""
        if now_ms - self.modified_ms > timeout_s * 1000:
            return False
        return self.process is None or not self.process.is_gone()


@dataclass(slots=True)
class _Beating:
    """One of our own. ``turn`` keeps a beat and the stop of the same heartbeat apart."""

    body: bytes
    last: Moment
    lost: str = ""
    stopped: bool = False
    turn: threading.Lock = field(default_factory=threading.Lock)


class Heartbeats:
    """The heartbeats of one table's writer. Safe to use from several threads.

    Args:
        storage: at the table's root.
        owner: who writes, for people.
        timeout_s: how old a last beat may be; Hudi's default is 600.
        directory: where the files lie.
    """

    def __init__(self, storage: Storage, owner: str, timeout_s: float, directory: str = HEARTBEAT_PATH) -> None:
        self._storage = unsynced(unfenced(storage))
        self._directory = directory
        self._owner = owner
        self._timeout_s = timeout_s
        self._live: dict[str, _Beating] = {}
        self._ticker = Ticker("binlake-heartbeat", min(_MAX_INTERVAL_S, timeout_s / _BEATS_PER_TIMEOUT))

    def start(self, instant: str) -> None:
        """Begin to beat, before the instant exists.

        Raises AlreadyExistsError if somebody else has begun an instant of that time, StorageError.
        """
        body = json.dumps({"owner": self._owner, "process": this_process().to_json()}).encode()
        beating = _Beating(body, Moment())
        self._storage.create(self._path(instant), body)
        self._live[instant] = beating
        self._ticker.add(instant, partial(self._beat, instant, beating))

    def stop(self, instant: str) -> None:
        """Beat no more, and delete the file; one that cannot be deleted goes out of date. Nothing if not ours."""
        self._ticker.remove(instant)
        beating = self._live.pop(instant, None)
        if beating is None:
            return
        with beating.turn, contextlib.suppress(BinlakeError):
            beating.stopped = True
            if not beating.lost:
                self._storage.delete(self._path(instant))

    def check(self, instant: str) -> None:
        """To be asked before an instant is completed; no call of the store. Raises LostOwnershipError if others may
        take it for dead."""
        beating = self._live.get(instant)
        lost = "it does not beat" if beating is None else self._is_lost(beating)
        if lost:
            raise LostOwnershipError(
                f"the instant's heartbeat is lost: {lost}, so somebody else may have rolled the instant back",
                do_next="begin again with a new instant; if the machine was not paused, look at the storage's health",
                table=self._storage.uri,
                instant=instant,
            )

    def beats(self, instant: str) -> bool:
        """Whether this object beats for an instant, and has not lost it; no call of the store."""
        beating = self._live.get(instant)
        return beating is not None and not self._is_lost(beating)

    def find(self, instant: str) -> Heartbeat | None:
        """Anybody's heartbeat of an instant; None if there is none. Raises StorageError."""
        try:
            body = self._storage.read(self._path(instant))
        except StorageNotFoundError:
            return None
        info = self._storage.stat(self._path(instant))
        return _parse(body, info.modified_ms) if info else None

    def instants(self) -> list[str]:
        """The instants that anybody beats for, or has beaten for and died. Raises StorageError."""
        return sorted(info.path.rpartition("/")[2] for info in self._storage.list(self._directory))

    def discard(self, instant: str) -> None:
        """Delete the heartbeat that somebody dead left. Raises StorageError."""
        self._storage.delete(self._path(instant))

    def close(self) -> None:
        """Beat no more. The files stay: what was not stopped is for the next writer to roll back."""
        for beating in self._live.values():
            beating.stopped = True
        self._live.clear()
        self._ticker.close()

    def _path(self, instant: str) -> str:
        return f"{self._directory}/{instant}" if self._directory else instant

    def _beat(self, instant: str, beating: _Beating) -> None:
        with beating.turn:
            if beating.stopped or self._is_lost(beating):
                return
            moment = Moment()
            try:
                beating.lost = self._refresh(instant, beating.body)
            except BinlakeError as error:
                fields = {"event": "heartbeat_failed", "path": f"{self._storage.uri}/{self._path(instant)}"}
                _log.warning("a heartbeat failed and will be tried again: %s", error, extra=fields)
                return
            beating.last = moment

    def _refresh(self, instant: str, body: bytes) -> str:
        """One beat; why the heartbeat is lost, if so. Raises BinlakeError for a beat that failed."""
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

    def _is_lost(self, beating: _Beating) -> str:
        if not beating.lost and (age := beating.last.age_s()) > self._timeout_s:
            beating.lost = f"its last beat was {age:.0f} s ago"
        return beating.lost


def _parse(body: bytes, modified_ms: int) -> Heartbeat:
    try:
        found = json.loads(body)
        return Heartbeat(str(found["owner"]), ProcessIdentity.from_json(found.get("process")), modified_ms)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Heartbeat("", None, modified_ms)
