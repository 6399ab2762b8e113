"""64-bit hashes of texts, for whole Arrow columns at once. They are kept in commits, so the rule must not change."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.compiled import BYTES, LONGS, NOTHING, ULONGS, compiled
from hudilake.format.definition.xxhash32 import utf8_of

_BASIS: Final = np.uint64(0xCBF29CE484222325)
_PRIME: Final = np.uint64(0x100000001B3)
_MIX1, _MIX2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_33 = np.uint64(33)
_Longs = npt.NDArray[np.int64]


def hashes(texts: pa.Array) -> _Longs:
    """A hash of each text, int64 of n; null hashes like the empty text. FNV-1a, then the last step of MurmurHash3."""
    body, offsets = utf8_of(texts)
    text_hashes = np.empty(len(texts), dtype=np.uint64)
    _hash_all(body, offsets, text_hashes)
    return text_hashes.view(np.int64)


@compiled(NOTHING(BYTES, LONGS, ULONGS))
def _hash_all(data: npt.NDArray[np.uint8], offsets: _Longs, found: npt.NDArray[np.uint64]) -> None:
    for row in range(len(found)):
        value = _BASIS
        for byte_index in range(offsets[row], offsets[row + 1]):
            value = (value ^ np.uint64(data[byte_index])) * _PRIME
        value = (value ^ (value >> _33)) * _MIX1
        value = (value ^ (value >> _33)) * _MIX2
        found[row] = value ^ (value >> _33)
