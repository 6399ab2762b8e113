"""Queries of a table: its latest rows, the rows of a moment, those of its base files, or the changed rows."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from hudilake.errors import ConfigError, reversed_window

_INSTANT = re.compile(r"\d{17}", re.ASCII)
_SECONDS = re.compile(r"\d{14}", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{3}))?)?", re.ASCII)
#: Before every instant.
EARLIEST = "earliest"


@dataclass(frozen=True)
class Snapshot:
    """The latest rows; with ``as_of`` those of the commits requested at or before that instant (17 digits).

    Example:
        >>> str(hudilake.Snapshot(as_of="20240229123456789"))
        'as of 20240229123456789'
    """

    as_of: str | None = None

    def __str__(self) -> str:
        return "snapshot" if self.as_of is None else f"as of {self.as_of}"


@dataclass(frozen=True)
class ReadOptimized:
    """The rows of the latest base files alone: as of each file group's last compaction."""

    def __str__(self) -> str:
        return "read optimized"


@dataclass(frozen=True)
class Incremental:
    """The rows that commits completed after ``begin`` and up to ``end`` (None: now) wrote, in their state at ``end``.
    Instants of 17 digits; ``begin`` may be "" for all. Deleted rows are not included. Raises ConfigError if ``end`` is
    before ``begin``.

    Example:
        >>> str(hudilake.Incremental(begin="20240229123456789"))
        'incremental after 20240229123456789'
    """

    begin: str
    end: str | None = None

    def __post_init__(self) -> None:
        if self.end is not None and self.end < self.begin:
            raise reversed_window(self.begin, self.end)

    def __str__(self) -> str:
        return f"incremental after {self.begin or EARLIEST}" + (f" up to {self.end}" if self.end else "")


Query: TypeAlias = Snapshot | ReadOptimized | Incremental


def instant_of(text: str) -> str:
    """The instant of 17 digits of a moment in text form.

    Takes an instant of 17 digits, or of 14 (the end of that second, as in Hudi), ``2024-02-29``,
    ``2024-02-29 12:34:56`` and ``2024-02-29 12:34:56.789`` in UTC. Raises ConfigError for anything else, also for a day
    that no calendar has.

    Example:
        >>> hudilake.instant_of("2024-02-29 12:34:56")
        '20240229123456000'
    """
    match = _DATE.fullmatch(text.strip())
    seconds, millis = (text[:14], text[14:]) if _INSTANT.fullmatch(text) else (text, "999")
    if match is not None:
        year, month, day, *clock, digits = match.groups()
        seconds, millis = "".join([year, month, day, *(part or "00" for part in clock)]), digits or "000"
    if _SECONDS.fullmatch(seconds):
        with suppress(ValueError):  # of no calendar: it would be compared as text
            datetime.fromisoformat(f"{seconds[:8]}T{seconds[8:]}")
            return seconds + millis
    raise ConfigError(
        f"{text!r} is not a moment", do_next="write 2024-02-29 12:34:56.789 or an instant of 17 digits, in UTC"
    )
