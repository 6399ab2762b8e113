"""The lease of a stream: one run at a time reads and writes the ledger, and keeps a heartbeat beside it.

A second run is refused while the first one lives. A run that died on this machine is recognized at once. For a run on
another machine, or one that does not name its process, the second run waits until the heartbeat has expired.
"""

from __future__ import annotations

import contextlib
import logging
from time import sleep
from types import TracebackType

from hudilake.clock import monotonic_s
from hudilake.errors import LostOwnershipError
from hudilake.locking.heartbeat import Heartbeat, Heartbeats
from hudilake.storage import AlreadyExistsError, Storage

_log = logging.getLogger(__name__)

#: How long a run may be silent before it counts as dead.
SILENCE_S = 60.0
_NAME = "run"
_PAUSE_S = 0.5


class StreamLease:
    """The right to run a stream; a ``with`` statement takes it and gives it back.

    Args:
        state: the stream's state directory.
        stream: its name.
        silence_s: how long another run may be silent before it counts as dead.
    """

    def __init__(self, state: Storage, stream: str, silence_s: float = SILENCE_S) -> None:
        self._state, self._stream, self._silence_s = state, stream, silence_s
        self._beats = Heartbeats(state, f"stream {stream}", silence_s, directory="")

    def __enter__(self) -> StreamLease:
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_back()

    def holder(self) -> Heartbeat | None:
        """The run that holds the lease, alive or dead; None if there is none. Raises StorageError."""
        return self._beats.find(_NAME)

    def take(self) -> None:
        """Take the lease. Waits until a run without a new heartbeat counts as dead.

        Raises LostOwnershipError if another run lives, StorageError.
        """
        first: Heartbeat | None = None
        deadline = monotonic_s() + 2 * self._silence_s
        while monotonic_s() < deadline:
            with contextlib.suppress(AlreadyExistsError):
                self._beats.start(_NAME)
                return
            heartbeat = self.holder()
            if heartbeat is None:
                continue
            if self._beats.is_dead(heartbeat):
                self._beats.discard(_NAME)
                fields = {
                    "event": "dead_run_replaced",
                    "stream": self._stream,
                    "host": heartbeat.host,
                    "pid": heartbeat.pid,
                }
                _log.info("stream %s: the previous run died; this run takes its place", self._stream, extra=fields)
                continue
            first = first or heartbeat
            if heartbeat.runs_here() or heartbeat.modified_ms != first.modified_ms:
                break
            sleep(_PAUSE_S)
        raise self._taken(first)

    def check(self) -> None:
        """Raise LostOwnershipError if another run may have begun."""
        if not self._beats.beats(_NAME):
            raise LostOwnershipError(
                "this run sent no heartbeat for too long, and another run may have started",
                do_next="start it again; if another run is active, this one is refused",
                stream=self._stream,
            )

    def give_back(self) -> None:
        """Give the lease back at the end of the run."""
        self._beats.stop(_NAME)
        self._beats.close()

    def _taken(self, by: Heartbeat | None) -> LostOwnershipError:
        return LostOwnershipError(
            "another run of this stream is active",
            do_next="stop one of the two; streams that run at the same time need different names",
            stream=self._stream,
            host=by.host if by is not None else None,
            pid=by.pid if by is not None else None,
            path=f"{self._state.uri}/{_NAME}",
        )
