"""The ways in which a lake follows a script that runs at the server.

* ``backlog``: all of it is there before the stream first starts.
* ``live``: a stream runs now and then while the script does, each time as a new process.
* ``kills``: as live, and the storage dies at random calls; at times the state is lost with the process.
* ``loaded``: the tables are loaded once they are there, and the stream goes on from the load, as live.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.programs.oracle.binlog.lake import BinlogLake
from tests.programs.oracle.comparison import Failure, failures
from tests.programs.oracle.exceptions import Excuses
from tests.programs.oracle.trial import broken

WAYS = ("backlog", "live", "kills", "loaded")
#: Of the statements, so many are followed by a stream's run.
SHARE = 0.15
_KILLS = 6


@dataclass
class Follower:
    """A lake that follows in a way. ``share``: of the statements behind which it goes on. ``failure``: what ended its
    stream; it does not go on then."""

    lake: BinlogLake
    way: str
    share: float = SHARE
    failure: Failure | None = None
    _loaded: bool = False
    _deaths: int = 0

    def split(self) -> None:
        """The first statements have run."""
        if self.way == "loaded":
            self._guarded(self.lake.load)
            self._loaded = True

    def pause(self) -> None:
        """A statement has run."""
        goes_on = self.way in ("live", "kills") or self._loaded
        if goes_on and self.lake.random.random() < self.share:
            self.go_on()

    def end(self, excuses: Excuses) -> tuple[Failure, ...]:
        """All has run, and ``lake.truth`` is known: what differs."""
        self._guarded(self.lake.apply)
        if self.failure is not None:
            return (self.failure,)
        return tuple(failures(self.lake, excuses))

    def go_on(self) -> None:
        """Bring the lake to where the server is, or die on the way."""
        self._guarded(self._go_on)

    def _go_on(self) -> None:
        if self.way == "kills" and self._deaths < _KILLS:
            self._deaths += self.lake.die()
        else:
            self.lake.apply()

    def _guarded(self, step: Callable[[], None]) -> None:
        if self.failure is None:
            try:
                step()
            except Exception as error:
                self.failure = broken(error)
