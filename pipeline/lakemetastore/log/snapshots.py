"""Writes the snapshots of a log, and forgets the entries that two snapshots cover.

The writer whose version is a multiple of N writes one. If it is killed first, the next multiple is as good. Two may
write the same one. A snapshot that fails costs nothing but a longer tail.
"""

from __future__ import annotations

import logging
import threading
from typing import Final, Generic, TypeVar

from hudilake.errors import LakeError
from lakemetastore.log.fold import Fold
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.records import SnapshotRecord, frame
from lakemetastore.log.replica import LogView
from lakemetastore.log.stores.base import LogStore

S = TypeVar("S")
E = TypeVar("E")

_log = logging.getLogger(__name__)
#: A large state is written again when its tail has a fourth of its size, or this many times N entries.
_TAIL_SHARE: Final = 4
_LONGEST_TAIL: Final = 20


class Snapshots(Generic[S, E]):
    """The snapshots of a log as one process writes them.

    Args:
        store: of the log.
        log: its name.
        fold: writes a state as bytes.
        policy: of the log.
    """

    def __init__(self, store: LogStore, log: str, fold: Fold[S, E], policy: LogPolicy) -> None:
        self._store, self._log, self._fold, self._policy = store, log, fold, policy
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        #: Of the newest snapshot that this process has written: its version, its size, and the bytes read until then.
        self._newest = 0, 0, 0

    def committed(self, view: LogView[S]) -> None:
        """A commit of this process made this view: write a snapshot if one is due. Never raises."""
        if not self._is_due(view):
            return
        if not self._policy.background:
            self._try(view)
            return
        with self._guard:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._try, args=(view,), name="snapshot", daemon=True)
                self._thread.start()

    def write(self, view: LogView[S]) -> None:
        """Write a snapshot, and trim the log up to the one before. Raises StorageError."""
        data = frame(SnapshotRecord(view.ids, self._fold.dump(view.state)))
        self._store.write_snapshot(self._log, view.version, data)
        self._newest = view.version, len(data), view.tail_bytes
        before = self._store.snapshot(self._log, before=view.version)
        if before is not None:
            # If the newest one is damaged, the one before and the entries behind it give the state.
            self._store.trim(self._log, before.version)

    def wait(self) -> None:
        """Wait for the snapshot that is being written, if one is."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _is_due(self, view: LogView[S]) -> bool:
        every = self._policy.snapshot_every
        version, size, read = max(self._newest, (view.snapshot, view.snapshot_bytes, 0))
        behind = view.version - version
        grown = (view.tail_bytes - read) * _TAIL_SHARE >= size
        return view.version % every == 0 and (grown or behind >= _LONGEST_TAIL * every)

    def _try(self, view: LogView[S]) -> None:
        try:
            self.write(view)
        except LakeError as error:
            _log.warning("snapshot %d of log %s was not written: %s", view.version, self._log, error)
