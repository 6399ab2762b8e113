"""What a store of logs does. A log is a row of entries with versions 1, 2, 3...; nothing changes an entry.

A store knows nothing of what entries mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from hudilake.errors import ConfigError
from hudilake.storage.base import StorageError

_NAME: Final = re.compile(r"[a-z0-9_-]+(?:/[a-z0-9_-]+)*")
_MAX_NAME: Final = 255


class TrimmedError(StorageError):
    """Entries that were asked for are gone: a snapshot covers them, or the log was deleted. Read the snapshot."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a log and its version, from 1."""

    version: int
    data: bytes


class LogStore(Protocol):
    """Logs by name. A name is one or more words of ``[a-z0-9_-]`` with slashes between them, at most 255 characters.

    Implementations are safe to use from several threads and processes, also after a fork. All calls raise StorageError.
    The name of a deleted log is not used again.
    """

    @property
    def uri(self) -> str:
        """Where the store is, without a password."""
        ...

    def append(self, log: str, version: int, data: bytes) -> bool:
        """Write the entry of a version if the log has none of that version and has the one before; durable on return.

        Of several callers exactly one gets True. The others get False. Raises OutcomeUnknownError if the entry may or
        may not have been written."""
        ...

    def read(self, log: str, after: int, limit: int | None = None) -> list[Entry]:
        """The entries with versions greater than ``after``, ascending, without a gap, at most ``limit``; empty if
        ``after`` is the last version, and for an unknown log with ``after`` 0. Raises TrimmedError if the entry
        ``after + 1`` is gone, or if the log does not reach to ``after``."""
        ...

    def last(self, log: str) -> int:
        """The version of the newest entry, also if it is gone since a snapshot covers it; 0 for an unknown log."""
        ...

    def write_snapshot(self, log: str, version: int, data: bytes) -> None:
        """Keep the state as of a version; whole or not at all. The newest two snapshots stay, older ones may go. Does
        nothing to a log that was deleted."""
        ...

    def snapshot(self, log: str, before: int | None = None) -> Entry | None:
        """The newest snapshot (of a version less than ``before``), with the version that it covers."""
        ...

    def trim(self, log: str, version: int) -> None:
        """Forget entries up to a version, if a snapshot covers it. The store may keep some of them."""
        ...

    def logs(self, prefix: str = "") -> Iterator[str]:
        """The names of all logs that begin with ``prefix``, sorted."""
        ...

    def delete(self, log: str) -> None:
        """Delete a log and its snapshots; nothing if there is none."""
        ...

    def turn(self, log: str, timeout_s: float) -> AbstractContextManager[bool]:
        """Wait for the turn to append to a log, in a queue where each writer comes up; False after ``timeout_s`` or if
        the store has no queue.

        A turn is for fairness and against races that all but one would lose. It excludes nobody: ``append`` decides.
        The turn of a process that ended is over."""
        ...

    def close(self) -> None:
        """Release connections and files."""
        ...


def check_name(log: str) -> str:
    """The name of a log, as given. Raises ConfigError if it is none."""
    if len(log) > _MAX_NAME or not _NAME.fullmatch(log):
        raise ConfigError("this is no name of a log", do_next="use words of a-z, 0-9, _ and -, with / between", log=log)
    return log


def trimmed(log: str, after: int) -> TrimmedError:
    """The error for entries that are gone."""
    return TrimmedError(
        "the entries behind this version are gone", do_next="read the newest snapshot first", log=log, version=after
    )
