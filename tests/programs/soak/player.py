"""What goes on all the time beside the stream: events are sent, and the machine's speed is probed."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from demo.messages import Message
from demo.produce import Sender
from hudilake.clock import monotonic_s
from tests.programs.soak.source import SoakSource

_TICK_S = 0.02
_PROBE_EVERY_S = 0.5


class Beside(ABC):
    """Something done in a thread of its own until paused. ``step`` does a little, ``began`` is told the start."""

    def __init__(self, pause_s: float) -> None:
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def began(self) -> None:  # noqa: B027 - not every one has something to note
        """Before the first step."""

    @abstractmethod
    def step(self) -> None:
        """One step."""

    def resume(self) -> None:
        """Go on."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)
        self._thread.start()

    def pause(self) -> None:
        """Stop, and raise what the thread raised."""
        self.end()
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """Stop, whatever was wrong."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        try:
            self.began()
            while not self._stop.wait(self._pause_s):
                self.step()
        except BaseException as error:
            self._error = error


class Player(Beside):
    """Sends the source's transactions at a rate (changes a second), and adds a column now and then.

    ``sent``: for every topic partition and offset, whether the record may change a row (1) or is a tombstone (0).
    """

    def __init__(self, source: SoakSource, servers: str, per_second: float, alter_every: int) -> None:
        super().__init__(_TICK_S)
        self._source, self._sender = source, Sender(servers)
        self._per_second, self._alter_every = per_second, alter_every
        self._altered = self._from = 0
        self._since_s = 0.0
        self.sent: dict[tuple[str, int], bytearray] = {}

    def send(self, messages: Sequence[Message]) -> None:
        """Send these."""
        for message in messages:
            self.sent.setdefault((message.topic, message.partition), bytearray()).append(message.value is not None)
        self._sender.send(messages)

    def pause(self) -> None:
        """Stop, and wait until the broker has everything."""
        super().pause()
        self._sender.flush()

    def changes_nothing(self, topic: str, partition: int, offset: int) -> bool:
        """Whether the record there is a tombstone."""
        return not self.sent[(topic, partition)][offset]

    def began(self) -> None:
        """Note where the rate counts from."""
        self._since_s, self._from = monotonic_s(), self._source.changes

    def step(self) -> None:
        """What is due."""
        due = self._from + self._per_second * (monotonic_s() - self._since_s)
        while self._source.changes < due:
            if self._source.changes // self._alter_every > self._altered:
                self._altered += 1
                self._source.alter()
            self.send(self._source.transaction())


class Probe(Beside):
    """Times a fixed piece of work again and again, and tells each time, in milliseconds."""

    def __init__(self, directory: Path, tell: Callable[[float], None]) -> None:
        super().__init__(_PROBE_EVERY_S)
        self._directory, self._tell = directory, tell

    def step(self) -> None:
        """Hash a little, sync a small file."""
        started = monotonic_s()
        hashlib.sha256(bytes(2_000_000)).digest()
        with tempfile.TemporaryFile(dir=self._directory) as file:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
        self._tell((monotonic_s() - started) * 1000)
