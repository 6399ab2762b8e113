"""Values of partition keys, column by column, for conditions that are evaluated over all partitions at once.

A key's values are kept as codes into a dictionary of its different values. A condition is decided once for each value
of the dictionary, then looked up by code.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.format.definition.keys import DEFAULT_PARTITION

Codes = npt.NDArray[np.int32]
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_LONG = 1 << 63


@dataclass(frozen=True)
class Distinct:
    """The different values of a key at one moment. Arrays have a place for each value."""

    values: tuple[str, ...]

    @cached_property
    def texts(self) -> pa.StringArray:
        """The values themselves, (n,)."""
        return pa.array(self.values, pa.string())

    @cached_property
    def integers(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The values as int64, (n,), and whether a value is an integer of 64 bits, (n,)."""
        return _parsed([_integer(value) for value in self.values])

    @cached_property
    def days(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The values as days since 1970-01-01, (n,), and whether a value is a date, (n,)."""
        return _parsed([day(value) for value in self.values])


class Dictionary:
    """The different values of a key, in the order in which they came. It only grows; threads may share it."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._lock = threading.Lock()
        self._distinct = Distinct(())

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, values: Sequence[str]) -> Codes:
        """The codes of values, int32 of the same length; values that are new get new codes."""
        with self._lock:
            codes = self._codes
            return np.fromiter((codes.setdefault(value, len(codes)) for value in values), np.int32, len(values))

    def code(self, value: str) -> int | None:
        """The code of a value, None for a value that never came."""
        return self._codes.get(value)

    def distinct(self) -> Distinct:
        """All values; at least those of codes that the caller holds."""
        if len(self._distinct.values) != len(self._codes):
            with self._lock:
                self._distinct = Distinct(tuple(self._codes))
        return self._distinct


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A partition key: its name in lower case, its type, and the code of each partition's value, (n,)."""

    name: str
    type: str
    dictionary: Dictionary
    codes: Codes


def day(text: str) -> int | None:
    """A date ``yyyy-MM-dd`` as days since 1970-01-01; None for any other text."""
    if not _DATE.fullmatch(text):
        return None
    try:
        return (datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).days
    except ValueError:
        return None


def _integer(text: str) -> int | None:
    if text == DEFAULT_PARTITION or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_LONG <= number < _LONG else None


def _parsed(found: list[int | None]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    known = np.array([value is not None for value in found], dtype=np.bool_)
    return np.array([value or 0 for value in found], dtype=np.int64), known
