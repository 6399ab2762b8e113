"""Which process wrote a lock or a heartbeat, and whether that process is gone for certain."""

from __future__ import annotations

import os
import socket
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

_PROC = Path("/proc")
_STATE, _START_TIME = 0, 19  # fields of /proc/<pid>/stat after the name, which ends with the last bracket
_DEAD = ("Z", "X")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process of the world.

    Attributes:
        host: the name of its machine, for people.
        pid: its id there.
        started: when it started, in the kernel's ticks since boot: a pid that was given again differs here. 0 unknown.
        place: the kernel's boot id and the pid namespace. Only there does the pid mean anything: machines may share a
            name, and containers a machine. Empty where there is no /proc.
    """

    host: str
    pid: int
    started: int
    place: str

    def is_gone(self) -> bool:
        """True only if that process ran here and runs no more. A machine that was started anew is not told from one
        of the same name: False, time has to tell."""
        return self.is_here() and _started(self.pid) != self.started

    def is_here(self) -> bool:
        """Whether its pid means anything to this process."""
        return bool(self.place) and self.place == this_process().place

    def to_json(self) -> dict[str, Any]:
        """As JSON's types."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: object) -> ProcessIdentity | None:
        """From JSON's types; None for what is no identity of ours."""
        if not isinstance(found, dict):
            return None
        host, pid, started, place = (found.get(name) for name in ("host", "pid", "started", "place"))
        if isinstance(host, str) and isinstance(pid, int) and isinstance(started, int) and isinstance(place, str):
            return cls(host, pid, started, place)
        return None


def this_process() -> ProcessIdentity:
    """The process that asks."""
    return _identity(os.getpid())


@lru_cache(maxsize=1)
def _identity(pid: int) -> ProcessIdentity:
    # By pid: a forked child must not take its parent's identity along.
    started = _started(pid) or 0
    return ProcessIdentity(socket.gethostname(), pid, started, _place() if started else "")


def _place() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(pid: int) -> int | None:
    """When a process started; None if there is none, or only what its parent has not yet cleared away."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[_STATE] in _DEAD else int(fields[_START_TIME])
