"""Packings of files of lines: gzip, zstd, bzip2, xz, lz4 frames and zlib by their first bytes, brotli by its name.

A file that is neither lines of text nor packed in one of these ways is refused whole: its lines would be bytes that
nothing can be made of.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, cast

import pyarrow as pa

from hudilake.errors import CorruptDataError

_READ_BYTES = 8 << 20
#: An xz file names the memory that it needs; its own tool writes files of at most 65 MiB.
_LZMA_BYTES = 1 << 30
_GZIP_LEVEL, _ZSTD_LEVEL = 6, 3
#: The bytes at a file's begin that tell what it is.
HEAD_BYTES = 8
_BY_HEAD: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x5d\x00\x00", "xz"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\x78\x01", "zlib"),
    (b"\x78\x9c", "zlib"),
    (b"\x78\xda", "zlib"),
)
#: Ends of names of files that are packed and do not say so in their first bytes.
_BROTLI = ".br"
#: Ends of names, and what such a file is: nothing here opens it.
_CLOSED: Mapping[str, str] = MappingProxyType(
    {
        ".snappy": "Snappy",
        ".sz": "Snappy",
        ".lzo": "LZO",
        ".Z": "compress",
        ".zip": "a ZIP archive",
        ".7z": "a 7z archive",
        ".tar": "an archive",
        ".tar.gz": "an archive",
        ".tgz": "an archive",
        ".orc": "ORC",
        ".arrow": "Arrow IPC",
        ".feather": "Arrow IPC",
    }
)
_HEADS_OF_CLOSED = (b"ORC", b"ARROW1", b"SEQ\x06")
_READABLE = "JSON lines (plain, or packed by gzip, zstd, bzip2, xz, lz4, zlib or brotli), Parquet or Avro"


class ByteStream(Protocol):
    """Bytes in order."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, ``size`` at most; none at the end."""
        ...


class _Unpacker(Protocol):
    """One packed stream, as ``bz2`` and ``lzma`` open it."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Zlib:
    """The same of ``zlib``."""

    def __init__(self) -> None:
        self._open, self.needs_input = zlib.decompressobj(), True

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""
        return self._open.eof

    @property
    def unused_data(self) -> bytes:
        """What follows the end."""
        return self._open.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """The next bytes, ``max_length`` at most."""
        opened = self._open.decompress(self._open.unconsumed_tail + data, max_length)
        self.needs_input = not self._open.unconsumed_tail and len(opened) < max_length
        return opened


class _UnpackedStreams:
    """Packed streams, one behind the other, opened: it never holds more than was asked for."""

    def __init__(self, packed: ByteStream, unpacker: Callable[[], _Unpacker]) -> None:
        self._packed, self._unpacker = packed, unpacker
        self._one: _Unpacker | None = None

    def read(self, size: int, /) -> bytes:
        """See ByteStream. Raises READ_ERRORS for damaged bytes."""
        while True:
            if self._one is None or self._one.eof:
                rest = b"" if self._one is None else self._one.unused_data.lstrip(b"\0")
                data = rest or self._packed.read(_READ_BYTES)
                if not (data := data if self._one is None else data.lstrip(b"\0")):
                    return b""
                self._one = self._unpacker()
            else:
                data = self._packed.read(_READ_BYTES) if self._one.needs_input else b""
                if self._one.needs_input and not data:
                    raise EOFError("the file ends before its packed bytes do")
            if opened := self._one.decompress(data, size):
                return opened


def packing_of(head: bytes, path: str) -> str | None:
    """How a file of lines is packed; None if it is not.

    Args:
        head: its first bytes, ``HEAD_BYTES`` of them if it has so many.
        path: of the file.

    Raises CorruptDataError for a file that is packed in a way which nothing here opens.
    """
    refuse_closed(path)
    if (known := next((name for begin, name in _BY_HEAD if head.startswith(begin)), None)) is not None:
        return known
    if path.endswith(_BROTLI):
        return "brotli"
    if head.startswith(_HEADS_OF_CLOSED):
        raise _closed(f"it begins as a file of {head[:3].decode()}", path)
    return None


def check_lines(first: Sequence[bytes], path: str) -> None:
    """Raise CorruptDataError if a file does not begin as text, and none of its ``first`` lines as a document: a damaged
    line among others is quarantined alone."""
    head = first[0][:HEAD_BYTES]
    if not _is_text(head) and not any(line.startswith(b"{") and _is_text(line[:HEAD_BYTES]) for line in first):
        raise _closed(f"it begins with bytes of no text, {head.hex(' ')}", path)


def refuse_closed(path: str) -> None:
    """Raise CorruptDataError for a file whose name says that nothing here opens it."""
    kind = next((kind for end, kind in _CLOSED.items() if path.endswith(end)), None)
    if kind is not None:
        raise _closed(f"its name says {kind}", path)


def _closed(why: str, path: str) -> CorruptDataError:
    return CorruptDataError(
        f"a dump file cannot be read: {why}",
        do_next=f"write it again as {_READABLE}, or move it out of the way; nothing of it was applied",
        path=path,
    )


def _is_text(head: bytes) -> bool:
    if any(byte < 0x20 and byte not in b"\t\n\r" for byte in head):
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:  # a character that the head cuts off is one
        return error.reason == "unexpected end of data" and error.start > len(head) - 4
    return True


@contextlib.contextmanager
def unpacked(stored: io.RawIOBase | io.BytesIO, packing: str | None) -> Iterator[ByteStream]:
    """A file of lines, opened. Reading raises READ_ERRORS for damaged bytes."""
    if packing is None:
        yield cast("ByteStream", stored)
    elif packing == "gzip":
        with gzip.GzipFile(fileobj=io.BufferedReader(cast("io.RawIOBase", stored), _READ_BYTES)) as opened:
            yield opened
    elif packing in _UNPACKERS:
        yield _UnpackedStreams(cast("ByteStream", stored), _UNPACKERS[packing])
    else:
        with pa.PythonFile(stored, mode="r") as below, pa.CompressedInputStream(below, packing) as opened:
            yield opened


_UNPACKERS: Mapping[str, Callable[[], _Unpacker]] = MappingProxyType(
    {
        "bz2": bz2.BZ2Decompressor,
        "xz": lambda: lzma.LZMADecompressor(memlimit=_LZMA_BYTES),
        "zlib": _Zlib,
    }
)


def packed(plain: bytes, packing: str | None) -> bytes:
    """Bytes of lines, packed."""
    if packing is None:
        return plain
    if packing == "gzip":
        return gzip.compress(plain, _GZIP_LEVEL, mtime=0)
    if packing in _PACKERS:
        return _PACKERS[packing](plain)
    if packing == "zstd":
        codec = pa.Codec(packing, compression_level=_ZSTD_LEVEL)
        return bytes(codec.compress(plain, asbytes=True))
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, packing) as stream:
        stream.write(plain)
    return bytes(sink.getvalue().to_pybytes())


_PACKERS: Mapping[str, Callable[[bytes], bytes]] = MappingProxyType(
    {"bz2": bz2.compress, "xz": lzma.compress, "zlib": zlib.compress}
)
