"""Java's ``String.hashCode``, for whole Arrow columns at once.

``hashCode`` is a polynomial in 31 over UTF-16 code units, modulo 2**32. 31 is odd, so it has an inverse modulo 2**32:
one running sum of ``unit * 31**-i`` over the concatenated units gives the hash of every string as a difference of
two sums times a power of 31. ASCII strings are their own code units; the others are transcoded first.
Its speed is measured in ``bench``. The rule is Java's, vectors in ``tests/data/golden/vectors.json``.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Int32s = npt.NDArray[np.int32]
_INVERSE_OF_31 = np.uint32(pow(31, -1, 1 << 32))
_CHUNK_UNITS = 1 << 18  # the running sum stays inside the second-level cache


@lru_cache(maxsize=4)
def _powers(base: int, size: int) -> npt.NDArray[np.uint32]:
    powers = np.full(size, base, dtype=np.uint32)
    powers[0] = 1
    return np.cumprod(powers, dtype=np.uint32)


def _hash_units(units: npt.NDArray[np.integer], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Hashes of the strings whose code units are ``units[offsets[i]:offsets[i + 1]]``."""
    size = 1 << max(10, len(units).bit_length())
    inverse, power = _powers(int(_INVERSE_OF_31), size), _powers(31, size)
    sums = np.zeros(len(units) + 1, dtype=np.uint32)
    np.cumsum(units.astype(np.uint32) * inverse[: len(units)], dtype=np.uint32, out=sums[1:])
    starts, ends = offsets[:-1], offsets[1:]
    last = np.maximum(ends - 1, 0)
    return (sums[ends] - sums[starts]) * power[last]


def _string_buffers(strings: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    large = strings.cast(pa.large_string())
    _, offsets, data = large.buffers()
    marks = np.frombuffer(offsets, dtype=np.int64)[large.offset : large.offset + len(large) + 1]
    units = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)
    return units[marks[0] : marks[-1]], marks - marks[0]


def _hash_ascii(units: npt.NDArray[np.uint8], marks: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    count = len(marks) - 1
    out = np.empty(count, dtype=np.uint32)
    start = 0
    while start < count:
        limit = int(np.searchsorted(marks, marks[start] + _CHUNK_UNITS, side="right")) - 1
        end = min(max(limit, start + 1), count)
        part = marks[start : end + 1]
        out[start:end] = _hash_units(units[part[0] : part[-1]], part - part[0])
        start = end
    return out


def _hash_unicode(strings: pa.Array) -> npt.NDArray[np.uint32]:
    encoded = [text.encode("utf-16-le", "surrogatepass") for text in strings.to_pylist()]
    marks = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) // 2 for text in encoded], out=marks[1:])
    return _hash_units(np.frombuffer(b"".join(encoded), dtype="<u2"), marks)


def java_string_hash(strings: pa.Array | pa.ChunkedArray) -> Int32s:
    """``String.hashCode`` of every string as int32; 0 for null, as Java's ``Objects.hashCode`` gives.

    Args:
        strings: string or large_string array of n values.
    """
    if isinstance(strings, pa.ChunkedArray):
        strings = strings.combine_chunks()
    if strings.null_count:
        strings = pc.fill_null(strings, "")
    units, marks = _string_buffers(strings)
    if not len(units) or int(units.max()) < 0x80:
        return _hash_ascii(units, marks).view(np.int32)
    ascii_rows = pc.string_is_ascii(strings)
    out = np.empty(len(strings), dtype=np.uint32)
    mask = ascii_rows.to_numpy(zero_copy_only=False)
    plain = strings.filter(ascii_rows)
    out[mask] = _hash_ascii(*_string_buffers(plain))
    out[~mask] = _hash_unicode(strings.filter(pc.invert(ascii_rows)))
    return out.view(np.int32)
