"""How much memory a query may take, and where it spills what does not fit."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hudilake.errors import ConfigError

_UNITS = {"kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4}
_BINARY = {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?b)", re.IGNORECASE)


@dataclass(frozen=True)
class Limits:
    """The limits of one query.

    Args:
        memory_bytes: for the rows that the query sorts, joins and groups; None for half of the machine's memory. The
            rows of a file slice that is being read are not part of it.
        directory: where a private directory for spilled rows is made, and removed with the query; None for the
            system's place for temporary files.

    Example:
        >>> limits = hudilake.Limits(memory_bytes=200 << 20)
        >>> hudilake.sql("SELECT max(qty) AS qty FROM o", {"o": orders}, limits).to_pylist()
        [{'qty': 5}]
    """

    memory_bytes: int | None = None
    directory: Path | None = None

    @property
    def memory(self) -> int:
        """The memory in bytes."""
        return self.memory_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2

    def half(self) -> Limits:
        """Half of the memory, for each of two databases of one query."""
        return Limits(self.memory // 2, self.directory)

    def spill_directory(self) -> tempfile.TemporaryDirectory[str]:
        """A new directory that only this user can open. Raises ConfigError if it cannot be made.

        DuckDB lets a query read the files in its directory for spilling, also where it may read no others (measured,
        DuckDB 1.5.6). So no two queries share one.
        """
        try:
            return tempfile.TemporaryDirectory(prefix="binlake-query-", dir=self.directory)
        except OSError as error:
            raise ConfigError(
                f"the directory for spilled rows cannot be used: {error.strerror}",
                do_next="give another directory",
                path=self.directory,
            ) from error


def memory_of(text: str) -> int:
    """Bytes of ``500MB`` or ``1.5 GiB`` (units of 1000, or of 1024 with an i). Raises ConfigError."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or not float(match[1]):
        raise ConfigError(f"{text!r} is not an amount of memory", do_next="write 500MB or 2GiB")
    unit = match[2].lower()
    return int(float(match[1]) * (_UNITS.get(unit) or _BINARY[unit]))
