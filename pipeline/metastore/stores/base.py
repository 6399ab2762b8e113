"""What a store of logs does. A log is a row of entries with versions 1, 2, 3...; nothing changes an entry.

A store knows nothing of what entries mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a log and its version, from 1."""

    version: int
    data: bytes


class LogStore(Protocol):
    """Logs by name. A name is one or more words of ``[a-z0-9_-]`` with slashes between them.

    Implementations are safe to use from several threads and processes. All calls raise StorageError.
    """

    def append(self, log: str, version: int, data: bytes) -> bool:
        """Write the entry of a version if the log has none of that version and has the one before; durable on return.

        Of several callers exactly one gets True. The others get False.
        """
        ...

    def read(self, log: str, after: int, limit: int | None = None) -> list[Entry]:
        """The entries with versions greater than ``after``, ascending, without a gap, at most ``limit``; empty for an
        unknown log. Entries below the log's snapshot may be gone: a caller reads the snapshot first."""
        ...

    def last(self, log: str) -> int:
        """The version of the newest entry, also if it is gone since a snapshot covers it; 0 for an unknown log."""
        ...

    def write_snapshot(self, log: str, version: int, data: bytes) -> None:
        """Keep the state as of a version; whole or not at all. An older snapshot may go."""
        ...

    def snapshot(self, log: str) -> Entry | None:
        """The newest snapshot, with the version that it covers."""
        ...

    def trim(self, log: str, version: int) -> None:
        """Forget the entries up to a version that a snapshot covers. Does nothing else."""
        ...

    def logs(self, prefix: str = "") -> Iterator[str]:
        """The names of all logs that begin with ``prefix``."""
        ...

    def delete(self, log: str) -> None:
        """Delete a log and its snapshots; nothing if there is none."""
        ...

    def close(self) -> None:
        """Release connections and files."""
        ...
