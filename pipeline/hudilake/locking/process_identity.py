"""The process that wrote a lock or a heartbeat, and whether it has certainly ended."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

_PROC = Path("/proc")
_STATE, _START_TIME = 0, 19  # fields of /proc/<pid>/stat after the name, which ends with the last bracket
_DEAD, _SUSPENDED = ("Z", "X"), ("T", "t")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, unique over machines and time.

    Attributes:
        host: the name of its machine, for users.
        pid: its id on that machine.
        started: its start in the kernel's ticks since boot: it differs if a pid is used again. 0 if unknown.
        place: the kernel's boot id and the pid namespace. The pid is valid only in it: machines may share a name, and
            containers a machine. Empty without /proc.
    """

    host: str
    pid: int
    started: int
    place: str

    def is_gone(self) -> bool:
        """True only if that process ran in this namespace and has ended. A restarted machine cannot be distinguished
        from another one of the same name: False, and the caller waits for the timeout."""
        return self.is_here() and _started(self.pid) != self.started

    def is_suspended(self) -> bool:
        """Whether that process certainly runs in this namespace and a signal, such as SIGSTOP, has suspended it."""
        return self.is_here() and not self.is_gone() and _fields(self.pid)[_STATE] in _SUSPENDED

    def is_here(self) -> bool:
        """Whether its pid is valid in this process's namespace."""
        return bool(self.place) and self.place == this_process().place

    def to_json(self) -> dict[str, Any]:
        """Returns a dict of all fields by their names."""
        return {"host": self.host, "pid": self.pid, "started": self.started, "place": self.place}

    @classmethod
    def from_json(cls, value: object) -> ProcessIdentity | None:
        """From JSON's types; None for a value that is not an identity of this form."""
        if not isinstance(value, dict):
            return None
        host, pid, started, place = (value.get(name) for name in ("host", "pid", "started", "place"))
        if isinstance(host, str) and isinstance(pid, int) and isinstance(started, int) and isinstance(place, str):
            return cls(host, pid, started, place)
        return None


def this_process() -> ProcessIdentity:
    """The identity of the calling process."""
    return _identity(os.getpid())


@lru_cache(maxsize=1)
def _identity(pid: int) -> ProcessIdentity:
    # By pid: a forked child must not keep its parent's identity.
    started = _started(pid) or 0
    return ProcessIdentity(socket.gethostname(), pid, started, _place() if started else "")


def _place() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(pid: int) -> int | None:
    """The start of a process; None if it does not exist, or is a zombie."""
    fields = _fields(pid)
    return None if fields[_STATE] in _DEAD else int(fields[_START_TIME])


def _fields(pid: int) -> list[str]:
    """What the kernel says of a process; as of a dead one if there is none."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return [_DEAD[0]]
