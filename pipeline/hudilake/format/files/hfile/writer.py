"""Writing HFiles, byte for byte as Hudi's native writer does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from hudilake.errors import CorruptDataError
from hudilake.format.files.hfile import layout
from hudilake.format.files.hfile.layout import Codec, write_vint
from hudilake.format.files.varint import write_varint

_ENTRY = layout.ENTRY_HEAD.pack
_TRAILER_NUMBERS = (1, 2, 3, 5, 6, 7, 8, 9, 10)
_U64 = (1 << 64) - 1


class HFileWriter:
    """Builds one HFile in memory.

    Args:
        codec: block compression.
        block_size: uncompressed bytes after which a data block is closed.
        bytes_per_checksum: see ``layout.ONE_CHECKSUM``; another value only to reproduce Java's bytes.
        level: gzip level.
    """

    def __init__(
        self,
        codec: Codec = Codec.GZIP,
        block_size: int = layout.BLOCK_SIZE,
        bytes_per_checksum: int = layout.ONE_CHECKSUM,
        level: int = 4,
    ) -> None:
        self._codec, self.block_size, self._per_checksum, self._level = codec, block_size, bytes_per_checksum, level
        self._out: list[bytes] = []
        self._offset = 0
        self._index: list[bytes] = []
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._pending_first = self._last_key = b""
        self._first_offset, self._last_offset = -1, 0
        self._block_start = -1
        self._entries = self._key_bytes = self._value_bytes = 0

    def append(self, key: bytes, value: bytes) -> None:
        """Add one entry; keys must come strictly ascending by bytes. Raises CorruptDataError if they do not."""
        if self._entries and key <= self._last_key:
            raise CorruptDataError("HFile keys must be strictly ascending", do_next="report this as a bug", key=key)
        size = len(key) + len(value) + layout.ENTRY_EXTRA
        if self._pending and self._pending_bytes + size > self.block_size:
            self._flush()
        if not self._pending:
            self._pending_first = key
        head = _ENTRY(len(key) + layout.KEY_EXTRA, len(value), len(key))
        self._pending += (head, key, layout.KEY_TAIL, value, b"\x00")
        self._pending_bytes += size
        self._last_key = key
        self._entries += 1
        self._key_bytes += len(key)
        self._value_bytes += len(value)

    def append_block(self, data: bytes, first: bytes, last: bytes, entries: int, key_bytes: int) -> None:
        """Add a whole data block.

        Args:
            data: its entries, strictly ascending by key.
            first, last: its least and its greatest key.
            entries: how many there are.
            key_bytes: the bytes of all keys.

        Raises CorruptDataError if its keys do not come after those before it.
        """
        if self._entries and first <= self._last_key:
            raise CorruptDataError("HFile keys must be strictly ascending", do_next="report this as a bug", key=first)
        self._flush()
        self._put(data, first)
        self._last_key = last
        self._entries += entries
        self._key_bytes += key_bytes
        self._value_bytes += len(data) - key_bytes - entries * layout.ENTRY_EXTRA

    def _flush(self) -> None:
        if not self._pending:
            return
        self._put(b"".join(self._pending), self._pending_first)
        self._pending, self._pending_bytes = [], 0

    def _put(self, data: bytes, first: bytes) -> None:
        start = self._offset
        size = self._block(layout.DATA_MAGIC, data, self._block_start)
        if self._first_offset < 0:
            self._first_offset = start
        self._last_offset = start
        row_key = len(first).to_bytes(2, "big") + first
        self._index.append(_index_entry(start, size, row_key))
        self._block_start = self._offset

    def _block(self, magic: bytes, data: bytes, previous: int = -1) -> int:
        """Put one block out; returns its size on storage, header and checksum bytes included."""
        packed = layout.compress(self._codec, data, self._level)
        with_header = layout.BLOCK_HEADER.size + len(packed)
        tail = layout.checksum_bytes(with_header, self._per_checksum)
        self._out.append(
            layout.BLOCK_HEADER.pack(magic, len(packed) + tail, len(data), previous, 0, self._per_checksum, with_header)
        )
        self._out += (packed, bytes(tail))
        self._offset += with_header + tail
        return with_header + tail

    def finish(self, file_info: Mapping[str, bytes], created_ms: int, meta: Mapping[str, bytes] | None = None) -> bytes:
        """Close the file and return its bytes.

        Args:
            file_info: the caller's entries of the file info; Hudi's readers need ``schema``.
            created_ms: creation time, milliseconds since the epoch.
            meta: meta blocks by name (``bloomFilter``).
        """
        self._flush()
        meta_index = [self._meta_block(name, value) for name, value in (meta or {}).items()]
        load_on_open = self._offset
        self._block(layout.INDEX_MAGIC, b"".join(self._index))
        self._block(layout.INDEX_MAGIC, b"".join(meta_index))
        info_at = self._offset
        entries = {"MAX_MEMSTORE_TS_KEY": bytes(8), **file_info, **self._own_info(created_ms)}
        self._block(layout.FILE_INFO_MAGIC, _file_info(entries))
        numbers = (info_at, load_on_open, self._uncompressed(), len(self._index), len(meta_index), self._entries, 1)
        self._out.append(_trailer((*numbers, self._first_offset, self._last_offset), self._codec))
        return b"".join(self._out)

    def _meta_block(self, name: str, value: bytes) -> bytes:
        start = self._offset
        return _index_entry(start, self._block(layout.META_MAGIC, value), name.encode())

    def _uncompressed(self) -> int:
        return self._key_bytes + self._value_bytes + self._entries * layout.ENTRY_EXTRA

    def _own_info(self, created_ms: int) -> dict[str, bytes]:
        count = max(self._entries, 1)
        last = len(self._last_key).to_bytes(2, "big") + self._last_key if self._last_key else b""
        return {
            "hfile.LASTKEY": last,
            "hfile.AVG_KEY_LEN": (self._key_bytes // count).to_bytes(4, "big"),
            "hfile.AVG_VALUE_LEN": (self._value_bytes // count).to_bytes(4, "big"),
            "hfile.CREATE_TIME_TS": created_ms.to_bytes(8, "big"),
            "KEY_VALUE_VERSION": (1).to_bytes(4, "big"),
        }


def _index_entry(offset: int, size: int, key: bytes) -> bytes:
    return offset.to_bytes(8, "big") + size.to_bytes(4, "big") + write_vint(len(key)) + key


@lru_cache(maxsize=64)
def _java_map_slot(name: str) -> int:
    """The slot of a name in a ``java.util.HashMap`` of 16 slots: Java writes the file info in slot order."""
    spread = 0
    for unit in name.encode("ascii"):
        spread = (31 * spread + unit) & 0xFFFFFFFF
    return (spread ^ spread >> 16) & 15


@lru_cache(maxsize=64)
def _name_field(name: str) -> bytes:
    return _length_delimited(1, name.encode())


def _length_delimited(field: int, data: bytes) -> bytes:
    return write_varint(field << 3 | 2) + write_varint(len(data)) + data


def _file_info(values: Mapping[str, bytes]) -> bytes:
    pairs = b"".join(
        _length_delimited(1, _name_field(name) + _length_delimited(2, values[name]))
        for name in sorted(values, key=_java_map_slot)
    )
    return b"PBUF" + write_varint(len(pairs)) + pairs


def _trailer(numbers: tuple[int, ...], codec: Codec) -> bytes:
    fields = b"".join(
        write_varint(number << 3) + write_varint(value & _U64)
        for number, value in zip(_TRAILER_NUMBERS, numbers, strict=True)
    )
    fields += _length_delimited(11, layout.COMPARATOR) + write_varint(12 << 3) + write_varint(codec)
    head = layout.TRAILER_MAGIC + write_varint(len(fields)) + fields
    return head + bytes(layout.TRAILER_BYTES - 1 - len(head)) + b"\x03"


def encode_hfile(
    entries: Iterable[tuple[bytes, bytes]],
    schema: str,
    created_ms: int,
    codec: Codec = Codec.GZIP,
    block_size: int = layout.BLOCK_SIZE,
) -> bytes:
    """An HFile of (key, value) pairs that are strictly ascending by key, with its Avro schema (JSON text).

    Raises CorruptDataError when the keys are out of order. Measured: about 1 microsecond an entry besides gzip.
    """
    writer = HFileWriter(codec, block_size)
    for key, value in entries:
        writer.append(key, value)
    return writer.finish({layout.SCHEMA_KEY: schema.encode()}, created_ms)
