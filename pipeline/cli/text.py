"""Numbers as people read them, and where they are printed."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.console import Console

#: Width of what is printed into a file or a pipe, so that no table is folded.
FILE_WIDTH = 180
_UNITS_MS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))


def duration(millis: float | None) -> str:
    """``640 ms``, ``1.2 s``, ``3.4 min``, ``2.0 h``, ``5.1 d``; ``-`` for None."""
    if millis is None:
        return "-"
    for unit_ms, name in _UNITS_MS:
        if abs(millis) >= unit_ms:
            return f"{millis / unit_ms:.1f} {name}"
    return f"{millis / 1000:.1f} s" if abs(millis) >= 1000 else f"{millis:.0f} ms"


def size(count: int) -> str:
    """``512 B``, ``1.5 KB``, ``2.0 MB``, ``3.1 GB`` (powers of 1000)."""
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def number(count: int) -> str:
    """``12,345``."""
    return f"{count:,}"


def moment(epoch_ms: int | None) -> str:
    """``2026-11-21 05:30:00+00:00``; ``-`` for None."""
    return "-" if epoch_ms is None else datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(" ", "seconds")


def terminal(*, stderr: bool = False) -> Console:
    """Standard output (or error): as wide as the terminal, or wide enough for any table when it is none."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=FILE_WIDTH)
