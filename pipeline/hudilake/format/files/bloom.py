"""Hudi's bloom filters, byte-compatible with its Hadoop ones: SIMPLE and DYNAMIC_V0, hashed with Murmur2.

Hadoop's Murmur2 takes the bytes of an incomplete last word sign-extended, and each of the k hashes is seeded with the
one before. Vectors in ``tests/data/golden/vectors.json``.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.errors import CorruptDataError, UnsupportedError

SIMPLE: Final = "SIMPLE"
DYNAMIC: Final = "DYNAMIC_V0"
DEFAULT_FPP: Final = 1e-9

_MURMUR: Final = 1
_VERSION: Final = -1
_HEAD = struct.Struct(">iibi")  # version, number of hashes, hash type, bits
_DYNAMIC_HEAD = struct.Struct(">iii")  # entries per row, entries in the newest row, rows
_M = np.uint32(0x5BD1E995)
_ROWS_AT_ONCE = 8192  # working vectors stay inside the second-level cache

UInt8s = npt.NDArray[np.uint8]
UInt32s = npt.NDArray[np.uint32]
Keys: TypeAlias = "pa.Array | pa.ChunkedArray | Sequence[str] | Sequence[bytes]"


def _flat(keys: Keys) -> tuple[UInt8s, npt.NDArray[np.int64]]:
    """(all bytes, n + 1 offsets) of the keys, empty and null ones left out: Hadoop's filters know no empty key."""
    if not isinstance(keys, pa.Array | pa.ChunkedArray):
        keys = pa.array([key.encode() if isinstance(key, str) else key for key in keys], pa.large_binary())
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    if keys.null_count:
        keys = keys.drop_null()
    if pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type):
        keys = keys.cast(pa.large_string())
    _, offsets, data = keys.cast(pa.large_binary()).buffers()
    marks = np.frombuffer(offsets, dtype=np.int64)[keys.offset : keys.offset + len(keys) + 1]
    raw = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)
    raw, marks = raw[marks[0] : marks[-1]], marks - marks[0]
    lengths = np.diff(marks)
    return raw, marks if lengths.all() else np.concatenate(([0], marks[1:][lengths > 0]))


@dataclass(frozen=True)
class _MixedKeys:
    """Keys sorted by length, their words already mixed: what all seeds share.

    ``words[w]`` holds the mixed word w of the keys from ``first[w]`` on (those long enough to have it).
    """

    order: npt.NDArray[np.int64]
    lengths: UInt32s
    words: list[UInt32s]
    first: list[int]
    tail: UInt32s
    tail_factor: UInt32s


def _prepare(raw: UInt8s, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> _MixedKeys:
    order = np.argsort(lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    full = lengths >> 2
    padded = np.concatenate((raw, np.zeros(4, dtype=np.uint8)))
    words, first = [], []
    for number in range(int(full[-1]) if len(full) else 0):
        begin = int(np.searchsorted(full, number, side="right"))
        offsets = starts[begin:] + 4 * number
        word = padded[offsets].astype(np.uint32)
        for byte in (1, 2, 3):
            word |= padded[offsets + byte].astype(np.uint32) << np.uint32(8 * byte)
        word *= _M
        word ^= word >> np.uint32(24)
        word *= _M
        words.append(word)
        first.append(begin)
    tail, factor = _tails(raw, starts + lengths, lengths & 3)
    return _MixedKeys(order, lengths.astype(np.uint32), words, first, tail, factor)


def _tails(raw: UInt8s, ends: npt.NDArray[np.int64], remaining: npt.NDArray[np.int64]) -> tuple[UInt32s, UInt32s]:
    tail = np.zeros(len(ends), dtype=np.uint32)
    for back in (1, 2, 3):
        rows = np.flatnonzero(remaining >= back)
        signed = raw[ends[rows] - back].view(np.int8).astype(np.int32)
        tail[rows] ^= (signed << np.int32(8 * (back - 1))).view(np.uint32)
    return tail, np.where(remaining > 0, _M, np.uint32(1))


def _hash(keys: _MixedKeys, seeds: UInt32s) -> UInt32s:
    """Murmur2 of the prepared keys, one seed each."""
    h = seeds ^ keys.lengths
    for word, begin in zip(keys.words, keys.first, strict=True):
        part = h[begin:]
        part *= _M
        part ^= word
    h ^= keys.tail
    h *= keys.tail_factor
    h ^= h >> np.uint32(13)
    h *= _M
    h ^= h >> np.uint32(15)
    return h


def murmur2(keys: Keys, seed: int) -> npt.NDArray[np.int32]:
    """Hadoop's Murmur2 of every key that is not empty or null, under one seed (an int32)."""
    raw, marks = _flat(keys)
    prepared = _prepare(raw, marks[:-1], np.diff(marks))
    out = np.empty(len(marks) - 1, dtype=np.uint32)
    out[prepared.order] = _hash(prepared, np.full(len(out), seed & 0xFFFFFFFF, dtype=np.uint32))
    return out.view(np.int32)


def _positions(raw: UInt8s, marks: npt.NDArray[np.int64], bits: int, hashes: int) -> npt.NDArray[np.int64]:
    """(hashes, n) bit numbers of the keys."""
    count = len(marks) - 1
    out = np.empty((hashes, count), dtype=np.int64)
    lengths = np.diff(marks)
    for begin in range(0, count, _ROWS_AT_ONCE):
        end = min(begin + _ROWS_AT_ONCE, count)
        part = raw[marks[begin] : marks[end]]
        prepared = _prepare(part, marks[begin:end] - marks[begin], lengths[begin:end])
        value = np.zeros(end - begin, dtype=np.uint32)
        block = out[:, begin:end]
        for number in range(hashes):
            value = _hash(prepared, value)
            block[number, prepared.order] = np.abs(value.view(np.int32).astype(np.int64)) % bits
    return out


def bit_size(entries: int, fpp: float) -> int:
    """Bits of a filter for ``entries`` keys at the false positive rate ``fpp``."""
    return math.ceil(entries * (-math.log(fpp) / (math.log(2) * math.log(2))))


def hash_count(bits: int, entries: int) -> int:
    """Number of hashes that suits the size."""
    return math.ceil(math.log(2) * bits / entries)


class BloomFilter:
    """A filter of either kind; a SIMPLE one is a DYNAMIC one with one row that never grows.

    Build with ``simple``, ``dynamic`` or ``from_base64``.
    """

    def __init__(self, kind: str, bits: int, hashes: int, rows: list[npt.NDArray[np.bool_]]) -> None:
        self.kind, self.bits, self.hashes = kind, bits, hashes
        self._rows = rows
        self._per_row = self._in_row = self._max_entries = 0
        self._overflow: int | None = None

    @classmethod
    def simple(cls, entries: int, fpp: float = DEFAULT_FPP) -> BloomFilter:
        """An empty filter sized for ``entries`` keys (at least one)."""
        entries = max(entries, 1)
        bits = bit_size(entries, fpp)
        return cls(SIMPLE, bits, hash_count(bits, entries), [np.zeros(bits, dtype=np.bool_)])

    @classmethod
    def dynamic(cls, entries: int, fpp: float, max_entries: int) -> BloomFilter:
        """An empty filter that grows by rows of ``entries`` keys until it holds ``max_entries``."""
        made = cls.simple(entries, fpp)
        made.kind, made._per_row, made._max_entries = DYNAMIC, max(entries, 1), max_entries
        return made

    @classmethod
    def of(cls, keys: pa.Array | pa.ChunkedArray, fpp: float = DEFAULT_FPP) -> BloomFilter:
        """A SIMPLE filter sized to the keys, and holding them."""
        made = cls.simple(len(keys), fpp)
        made.add(keys)
        return made

    @classmethod
    def open(cls) -> BloomFilter:
        """The smallest filter that may contain everything: it rules nothing out."""
        return cls(SIMPLE, 1, 1, [np.ones(1, dtype=np.bool_)])

    @property
    def row_count(self) -> int:
        """Rows of the matrix; 1 for a SIMPLE filter."""
        return len(self._rows)

    def add(self, keys: Keys) -> None:
        """Add keys, in their order (it decides the row of each in a DYNAMIC filter). Empty and null keys are skipped.

        Measured: about 1 microsecond a key with 30 hashes, 0.15 with 10.
        """
        raw, marks = _flat(keys)
        positions = _positions(raw, marks, self.bits, self.hashes)
        begin, count = 0, positions.shape[1]
        while begin < count:
            row, room = self._next_row()
            end = min(count, begin + room)
            row[positions[:, begin:end].ravel()] = True
            self._in_row += end - begin
            begin = end

    def _next_row(self) -> tuple[npt.NDArray[np.bool_], int]:
        """(the row the next key goes to, how many keys it takes before the choice is made again)."""
        if self.kind == SIMPLE:
            return self._rows[0], 1 << 62
        if self._overflow is not None:
            row = self._rows[self._overflow % len(self._rows)]
            self._overflow += 1
            return row, 1
        if self._in_row < self._per_row:
            return self._rows[-1], self._per_row - self._in_row
        if len(self._rows) * self._per_row < self._max_entries:
            self._rows.append(np.zeros(self.bits, dtype=np.bool_))
            self._in_row = 0
            return self._rows[-1], self._per_row
        self._overflow = 0  # Hudi: the first key beyond the maximum goes to row 0, the rest in turn from row 0 on
        return self._rows[0], 1

    def might_contain(self, keys: Keys) -> npt.NDArray[np.bool_]:
        """For each key: False means certainly not inside. Keys must be neither empty nor null."""
        raw, marks = _flat(keys)
        positions = _positions(raw, marks, self.bits, self.hashes)
        inside = np.zeros(positions.shape[1], dtype=np.bool_)
        for row in self._rows:
            inside |= row[positions].all(axis=0)
        return inside

    def packed_rows(self) -> tuple[UInt8s, ...]:
        """The rows with eight bits a byte, the least significant first."""
        return tuple(np.packbits(row, bitorder="little") for row in self._rows)

    def to_bytes(self) -> bytes:
        """Hadoop's serial form."""
        head = _HEAD.pack(_VERSION, self.hashes, _MURMUR, self.bits)
        rows = [head + row.tobytes() for row in self.packed_rows()]
        if self.kind == SIMPLE:
            return rows[0]
        return head + _DYNAMIC_HEAD.pack(self._per_row, self._in_row, len(rows)) + b"".join(rows)

    def to_base64(self) -> str:
        """The text form of footers and, as UTF-8 bytes, of the metadata table."""
        return base64.b64encode(self.to_bytes()).decode("ascii")

    @classmethod
    def from_bytes(cls, kind: str, data: bytes) -> BloomFilter:
        """Read the serial form. A DYNAMIC filter read back never grows, as in Hudi: the maximum is not stored.

        Raises UnsupportedError for another kind or hash, CorruptDataError for bytes cut short.
        """
        if kind not in (SIMPLE, DYNAMIC):
            raise UnsupportedError(f"bloom filter kind {kind!r}", do_next="rebuild the bloom filters")
        try:
            return cls._read(kind, data)
        except struct.error as error:
            raise _corrupt() from error

    @classmethod
    def _read(cls, kind: str, data: bytes) -> BloomFilter:
        if kind == SIMPLE:
            bits, hashes, row, _ = _read_simple(data, 0)
            return cls(kind, bits, hashes, [row])
        _, hashes, _, bits = _HEAD.unpack_from(data)
        per_row, in_row, count = _DYNAMIC_HEAD.unpack_from(data, _HEAD.size)
        rows, end = [], _HEAD.size + _DYNAMIC_HEAD.size
        for _ in range(count):
            _, _, row, end = _read_simple(data, end)
            rows.append(row)
        if not rows or not 0 < hashes <= _MOST_HASHES or any(len(row) != bits for row in rows):
            raise _corrupt()
        made = cls(kind, bits, hashes, rows)
        made._per_row, made._in_row = per_row, in_row
        return made

    @classmethod
    def from_base64(cls, kind: str, text: str | bytes) -> BloomFilter:
        """Read the text form. Raises as ``from_bytes`` does."""
        try:
            data = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise _corrupt() from error
        return cls.from_bytes(kind, data)

    def __contains__(self, key: object) -> bool:
        """Whether the key (text, not empty) may be inside."""
        return isinstance(key, str) and bool(self.might_contain((key,))[0])


def _corrupt() -> CorruptDataError:
    return CorruptDataError("a bloom filter is cut short or garbled", do_next="rebuild the bloom filters")


#: A filter with one false positive in 10**30 has 100. A damaged number could be 2**31, each a pass over all keys.
_MOST_HASHES = 255


def _read_simple(data: bytes, position: int) -> tuple[int, int, npt.NDArray[np.bool_], int]:
    version, hashes, kind, bits = _HEAD.unpack_from(data, position)
    if version != _VERSION or kind != _MURMUR:
        raise UnsupportedError(f"bloom filter version {version}, hash {kind}", do_next="rebuild the bloom filters")
    position += _HEAD.size
    end = position + (bits + 7) // 8
    if bits <= 0 or not 0 < hashes <= _MOST_HASHES or end > len(data):
        raise _corrupt()
    packed = np.frombuffer(data, dtype=np.uint8, count=end - position, offset=position)
    return bits, hashes, np.unpackbits(packed, count=bits, bitorder="little").view(np.bool_), end
