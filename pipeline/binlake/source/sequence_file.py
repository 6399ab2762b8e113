"""Records of Hadoop's SequenceFiles (version 6), as keys and values in bytes; classes of keys and values do not matter.

Own code, because no kept Python library reads the format: the published ones are archived, or need a JVM. Spark could
read it, but then every record would cross the JVM, and replays without Spark would have no reader. The form: the API
documentation of ``org.apache.hadoop.io.SequenceFile``; ``WritableUtils`` for integers of variable length.
"""

from __future__ import annotations

import bz2
import gzip
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from binlake.source.dump_packing import ByteStream

MAGIC: Final = b"SEQ"
_VERSION: Final = 6
_SYNC_BYTES: Final = 16
_ESCAPE: Final = -1
_INT: Final = struct.Struct(">i")
#: More than a compressed part of a file may hold: some bytes can be gigabytes of one value.
_MOST_BYTES: Final = 1 << 30
_CODECS: Final = "org.apache.hadoop.io.compress."


def sequence_records(stream: ByteStream, size: int) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of all records, as their classes serialized them.

    Args:
        stream: from the file's first byte on.
        size: the file's bytes.

    Raises ValueError, EOFError and the errors of the codecs for damaged bytes, another version or an unknown codec.
    """
    reader = _Reader(stream, size)
    header = _header(reader)
    records = _blocks(reader, header) if header.in_blocks else _records(reader, header)
    yield from records


@dataclass(frozen=True)
class _Header:
    codec: str | None
    in_blocks: bool
    sync: bytes

    def opened(self, data: bytes) -> bytes:
        """Compressed bytes, decompressed."""
        return data if self.codec is None else _codec(self.codec)(data)


class _Reader:
    """Reads parts whose sizes the file says. Nothing is allocated for a size beyond the file's end."""

    def __init__(self, stream: ByteStream, size: int) -> None:
        self._stream, self._left = stream, size

    def ended(self) -> bool:
        """Whether the file's end is reached."""
        return self._left == 0

    def take(self, size: int) -> bytes:
        """The next bytes. Raises EOFError."""
        if not 0 <= size <= self._left:
            raise EOFError(f"a part of {size} bytes where {self._left} are left")
        parts, missing = list[bytes](), size
        while missing:
            part = self._stream.read(missing)
            if not part:
                raise EOFError("the file is shorter than the store says")
            parts.append(part)
            missing -= len(part)
        self._left -= size
        return b"".join(parts)

    def integer(self) -> int:
        """An integer of four bytes."""
        return int(_INT.unpack(self.take(_INT.size))[0])

    def number(self) -> int:
        """An integer of variable length."""
        first = self.take(1)[0]
        more = _more_bytes(first)
        return _number(first, self.take(more)) if more else _number(first, b"")

    def part(self) -> bytes:
        """Bytes after their size."""
        return self.take(self.number())


def _header(reader: _Reader) -> _Header:
    magic = reader.take(len(MAGIC) + 1)
    if magic[:-1] != MAGIC or magic[-1] != _VERSION:
        raise ValueError(f"no SequenceFile of version {_VERSION}")
    for _ in ("class of the keys", "class of the values"):
        reader.part()
    compressed, in_blocks = reader.take(2)
    codec = reader.part().decode() if compressed else None
    if codec is not None:
        _codec(codec)
    for _ in range(2 * reader.integer()):
        reader.part()
    return _Header(codec, bool(in_blocks), reader.take(_SYNC_BYTES))


def _records(reader: _Reader, header: _Header) -> Iterator[tuple[bytes, bytes]]:
    while not reader.ended():
        size = reader.integer()
        if size == _ESCAPE:
            _check_sync(reader, header)
            if reader.ended():
                return
            size = reader.integer()
        key_size = reader.integer()
        key = reader.take(key_size)
        yield key, header.opened(reader.take(size - key_size))


def _blocks(reader: _Reader, header: _Header) -> Iterator[tuple[bytes, bytes]]:
    while not reader.ended():
        if reader.integer() != _ESCAPE:
            raise ValueError("a block without its mark")
        _check_sync(reader, header)
        count = reader.number()
        keys, values = (_parts(header.opened(reader.part()), header.opened(reader.part()), count) for _ in range(2))
        yield from zip(keys, values, strict=True)


def _parts(sizes: bytes, data: bytes, count: int) -> list[bytes]:
    """``data`` cut into ``count`` parts."""
    lengths = _Reader(_ByteReader(sizes), len(sizes))
    whole = _Reader(_ByteReader(data), len(data))
    return [whole.take(lengths.number()) for _ in range(count)]


class _ByteReader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        self._at += size
        return self._data[self._at - size : self._at]


def _check_sync(reader: _Reader, header: _Header) -> None:
    if reader.take(_SYNC_BYTES) != header.sync:
        raise ValueError("a sync mark that is not the file's own")


def _more_bytes(first: int) -> int:
    """How many bytes follow the first one of an integer of variable length."""
    signed = first - 256 if first > 127 else first
    if signed >= -112:
        return 0
    return -120 - signed if signed < -120 else -112 - signed


def _number(first: int, more: bytes) -> int:
    signed = first - 256 if first > 127 else first
    if not more:
        return signed
    value = int.from_bytes(more, "big")
    return ~value if signed < -120 else value


def _codec(name: str) -> Callable[[bytes], bytes]:
    """The decompressor of a codec's class. Raises ValueError for an unknown one."""
    known = _DECOMPRESS.get(name.removeprefix(_CODECS))
    if known is None:
        raise ValueError(f"the codec {name} is not supported; {', '.join(sorted(_DECOMPRESS))} are")
    return known


def _zlib(data: bytes) -> bytes:
    stream = zlib.decompressobj()
    decompressed = stream.decompress(data, _MOST_BYTES)
    if not stream.eof:
        raise ValueError("compressed bytes that do not end, or are too many")
    return decompressed


def _zstd(data: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        decompressed: bytes = stream.read(_MOST_BYTES)
    return decompressed


def _snappy(data: bytes) -> bytes:
    """Hadoop's framing: the size of a block, then chunks until it is full, each its size and raw Snappy."""
    reader, pieces, codec = _Reader(_ByteReader(data), len(data)), list[bytes](), pa.Codec("snappy")
    while not reader.ended():
        left = reader.integer()
        while left > 0:
            chunk = reader.take(reader.integer())
            size = _snappy_size(chunk)
            if size > left:
                raise ValueError("a chunk larger than its block")
            pieces.append(codec.decompress(chunk, decompressed_size=size, asbytes=True))
            left -= size
    return b"".join(pieces)


def _snappy_size(chunk: bytes) -> int:
    """The decompressed size that begins a Snappy chunk."""
    size = 0
    for place, byte in enumerate(chunk[:5]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    return size


_DECOMPRESS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "DefaultCodec": _zlib,
    "DeflateCodec": _zlib,
    "GzipCodec": gzip.decompress,
    "BZip2Codec": bz2.decompress,
    "ZStandardCodec": _zstd,
    "SnappyCodec": _snappy,
}
