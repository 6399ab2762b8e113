"""Functions that numba compiles for fixed types when their module is imported, and caches; and these types.

It stands alone: the kernels of all packages are compiled by it, and it imports none of ours.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from numba import njit, types

_log = logging.getLogger(__name__)
_said: list[bool] = []

P = ParamSpec("P")
R = TypeVar("R")

#: Signature of read-only bytes, integers and words, and of signed and unsigned longs and doubles (contiguous,
#: writable).
BYTES = types.Array(types.uint8, 1, "C", readonly=True)
OUT_BYTES = types.uint8[::1]
IN_INTS = types.Array(types.int32, 1, "C", readonly=True)
OUT_INTS = types.int32[::1]
LONGS = types.int64[::1]
LONG_ROWS = types.int64[:, ::1]
ULONGS = types.uint64[::1]
IN_ULONGS = types.Array(types.uint64, 1, "C", readonly=True)
ULONG_ROWS = types.uint64[:, ::1]
DOUBLES = types.float64[::1]
LONG = types.int64
ULONG = types.uint64
DOUBLE = types.float64
NOTHING = types.void


def _tell_once(hits: Mapping[object, int]) -> None:
    """Say that functions are compiled, when the first one was not in the cache: some dozen follow."""
    if not hits and not _said:
        _said.append(True)
        _log.info("compiling functions for this machine: this takes some seconds, and they are kept")


def compiled(signature: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:  # noqa: ANN401 - numba's type
    """Compiled at import, seconds once; cached beside the source, or in the user's cache if that is not writable."""

    def compile_it(function: Callable[P, R]) -> Callable[P, R]:
        try:
            made = njit(signature, cache=True, nogil=True)(function)
            _tell_once(made.stats.cache_hits)
            return made  # type: ignore[no-any-return]
        except (RuntimeError, OSError):  # no writable cache
            return njit(signature, nogil=True)(function)  # type: ignore[no-any-return]

    return compile_it
