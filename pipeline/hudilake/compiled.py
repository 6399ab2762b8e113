"""Functions that numba compiles for fixed types when their module is imported, and caches; and these types.

It stands alone: the kernels of all packages are compiled by it, and it imports none of ours.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from functools import cache
from types import CodeType, FunctionType
from typing import Any, ParamSpec, TypeVar, cast

from numba import njit, types
from numba.core import typeinfer
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys
from numpy import generic, ndarray

_log = logging.getLogger(__name__)
_said: list[bool] = []
_signatures: dict[object, str] = {}

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


def _tell_once(hits: Mapping[Any, int]) -> None:
    """Say that functions are compiled, when the first one was not in the cache: some dozen follow."""
    if not hits and not _said:
        _said.append(True)
        _log.info("compiling functions for this machine: this takes some seconds, and they are kept")


def compiled(signature: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:  # noqa: ANN401 - numba's type
    """Compiled at import, seconds once; cached beside the source, or in the user's cache if that is not writable.

    What is cached holds for the function and for what it takes from elsewhere. Numba's own cache looks at the file of
    the function alone: code that was compiled with a former version of another module would go on.
    """

    def compile_it(function: Callable[P, R]) -> Callable[P, R]:
        _signatures[function] = str(signature)
        try:
            return _made(function, signature, _Cache(cast(FunctionType, function)))
        except (RuntimeError, OSError):  # no writable cache
            return _made(function, signature, None)

    return compile_it


def _made(function: Callable[P, R], signature: Any, kept: FunctionCache | None) -> Callable[P, R]:  # noqa: ANN401
    made: Any = njit(nogil=True)(function)
    if kept is not None:
        made._cache = kept
    with typeinfer.register_dispatcher(made):
        made.compile(signature)
    made.disable_compile()
    if kept is not None:
        _tell_once(made.stats.cache_hits)
    return made  # type: ignore[no-any-return]


class _Cache(FunctionCache):
    """The cached code of one function, by what it was made of."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._parts = digest_of_parts(function)

    def load_overload(self, sig: object, target_context: Any) -> Any:  # noqa: ANN401 - numba's
        """Code that is kept is run with numba's runtime alone. Numba itself would first load what it knows of all
        functions, to compile them: as long as all else that a start needs of it. What is not kept is compiled, and the
        compiler loads that by itself."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]

    def _index_key(self, signature: object, codegen: object) -> tuple[object, ...]:
        return (*super()._index_key(signature, codegen), self._parts)  # type: ignore[no-untyped-call]


@cache
def digest_of_parts(function: FunctionType) -> str:
    """A digest of what a function takes from the names of its module: compiled functions with what these take, and
    constants, which numba freezes. Of anything else, which is Python's or numpy's, its name alone."""
    parts = hashlib.sha256()
    for name in function.__code__.co_names:
        value: Any = function.__globals__.get(name)
        said: object = None
        if isinstance(python := getattr(value, "py_func", None), FunctionType):
            code = python.__code__
            constants = [sorted(map(repr, one)) if isinstance(one, frozenset) else one for one in code.co_consts]
            plain = [one for one in constants if not isinstance(one, CodeType)]
            said = _signatures.get(python), code.co_code, code.co_names, plain, digest_of_parts(python)
        elif isinstance(value, ndarray | generic):
            said = value.dtype, value.shape, value.tobytes()
        elif isinstance(value, int | float | str | bytes | tuple):
            said = value
        parts.update(f"{name} {said!r}\n".encode())
    return parts.hexdigest()
