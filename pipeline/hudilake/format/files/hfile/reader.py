"""Reading HFiles: point lookups and scans, from bytes or from ranges of a stored file.

Keys ascend by their bytes, or by their UTF-16 units: Hudi's JVM writers leave both orders (``layout.by_units``).
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.files.hfile import layout
from hudilake.format.files.hfile.layout import Codec, read_vint
from hudilake.format.files.varint import read_varint

#: Bytes read from the end at once: they hold trailer, file info and indexes of all but huge files.
_TAIL_BYTES = 64 * 1024
_CACHED_BLOCKS = 8
#: Blocks at most so far from each other are read at once, and at most so many bytes.
_GAP_BYTES, _READ_BYTES = 256 * 1024, 8 * 1024 * 1024

ReadRange = Callable[[int, int], bytes]


@dataclass(frozen=True, slots=True)
class _Trailer:
    file_info_offset: int
    load_on_open: int
    data_index_count: int
    meta_index_count: int
    entries: int
    codec: Codec


@dataclass(frozen=True, slots=True)
class _Block:
    keys: list[bytes]
    values: list[bytes]


class HFileReader:
    """One HFile.

    Args:
        read_range: gives ``length`` bytes from ``start`` of the file.
        size: the file's size in bytes.
        name: for error messages.

    Every method raises CorruptDataError for bytes that are no HFile, UnsupportedError for one of another dialect.
    """

    def __init__(self, read_range: ReadRange, size: int, name: str = "") -> None:
        self._read, self._size, self._name = read_range, size, name
        self._blocks: OrderedDict[int, _Block] = OrderedDict()
        try:
            self._open()
        except (struct.error, LookupError, ValueError) as error:
            raise self._corrupt("no HFile, or cut short") from error

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "") -> HFileReader:
        """The reader of an HFile that is in memory (the content of a log block)."""
        return cls(lambda start, length: data[start : start + length], len(data), name)

    def _corrupt(self, problem: str) -> CorruptDataError:
        return CorruptDataError(f"HFile: {problem}", do_next="rebuild the metadata table", path=self._name or None)

    def _open(self) -> None:
        start = max(0, self._size - _TAIL_BYTES)
        tail = self._read(start, self._size - start)
        if len(tail) < layout.TRAILER_BYTES or len(tail) != self._size - start:
            raise self._corrupt("shorter than a trailer")
        trailer = self._trailer(tail[-layout.TRAILER_BYTES :])
        if trailer.load_on_open < start:
            start = trailer.load_on_open
            tail = self._read(start, self._size - start)
        self._codec, self.entries = trailer.codec, trailer.entries
        data_index, next_block = self._block_at(tail, trailer.load_on_open - start, layout.INDEX_MAGIC)
        meta_index, next_block = self._block_at(tail, next_block, layout.INDEX_MAGIC)
        file_info, _ = self._block_at(tail, trailer.file_info_offset - start, layout.FILE_INFO_MAGIC)
        self._first_keys, self._places = self._data_index(data_index, trailer.data_index_count)
        self._meta = dict(_index_entries(meta_index, trailer.meta_index_count))
        self.file_info = _file_info(file_info)

    def _trailer(self, data: bytes) -> _Trailer:
        if data[:8] != layout.TRAILER_MAGIC or data[-1] != 3:
            raise self._corrupt("no version 3 trailer")
        numbers = _trailer_numbers(data)
        if numbers.get(8, 1) > 1:
            raise UnsupportedError("an HFile of several index levels", do_next="let Hudi rewrite it", path=self._name)
        return _Trailer(
            file_info_offset=numbers[1],
            load_on_open=numbers[2],
            data_index_count=numbers.get(5, 0),
            meta_index_count=numbers.get(6, 0),
            entries=numbers.get(7, 0),
            codec=layout.codec_of(numbers.get(12, Codec.NONE)),
        )

    def _data_index(self, data: bytes, count: int) -> tuple[list[bytes], list[tuple[int, int]]]:
        entries = _index_entries(data, count)
        return [key[2 : 2 + int.from_bytes(key[:2], "big")] for key, _ in entries], [
            location for _, location in entries
        ]

    def _block_at(self, data: bytes, offset: int, magic: bytes) -> tuple[bytes, int]:
        """(plain bytes of the block that starts at ``at``, offset after it)."""
        if offset < 0 or offset + layout.BLOCK_HEADER.size > len(data):
            raise self._corrupt("an offset points outside")
        actual_magic, on_disk, plain_size, _, _, _, with_header = layout.BLOCK_HEADER.unpack_from(data, offset)
        end = offset + layout.BLOCK_HEADER.size + on_disk
        if actual_magic != magic or end > len(data) or with_header > layout.BLOCK_HEADER.size + on_disk:
            raise self._corrupt(f"a block of type {actual_magic!r} where {magic!r} was expected, or cut short")
        packed = data[offset + layout.BLOCK_HEADER.size : offset + with_header]
        return layout.decompress(self._codec, packed, plain_size), end

    @property
    def schema(self) -> str | None:
        """The Avro schema of the values (JSON text), if the file has it."""
        data = self.file_info.get(layout.SCHEMA_KEY)
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError as error:
            raise self._corrupt("its schema is no text") from error

    def meta_block(self, name: str) -> bytes | None:
        """The content of a meta block, or None."""
        location = self._meta.get(name.encode())
        if location is None:
            return None
        return self._block_at(self._read(*location), 0, layout.META_MAGIC)[0]

    @property
    def first_keys(self) -> list[bytes]:
        """The first key of each data block."""
        return self._first_keys

    @property
    def num_blocks(self) -> int:
        """The number of data blocks."""
        return len(self._places)

    def block_bytes(self, number: int) -> bytes:
        """The plain bytes of a data block."""
        return self._block_at(self._read(*self._places[number]), 0, layout.DATA_MAGIC)[0]

    def read_blocks(self, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """(number, plain bytes) of some data blocks, ascending. Blocks that are close to each other are read at
        once."""
        for together in self._close_blocks(numbers):
            start = self._places[together[0]][0]
            last, size = self._places[together[-1]]
            data = self._read(start, last + size - start)
            for number in together:
                yield number, self._block_at(data, self._places[number][0] - start, layout.DATA_MAGIC)[0]

    def _close_blocks(self, numbers: Sequence[int]) -> Iterator[list[int]]:
        together: list[int] = []
        for number in numbers:
            start, size = self._places[number]
            if together:
                last, last_size = self._places[together[-1]]
                far = start - last - last_size > _GAP_BYTES
                if far or start + size - self._places[together[0]][0] > _READ_BYTES:
                    yield together
                    together = []
            together.append(number)
        if together:
            yield together

    def _block(self, number: int) -> _Block:
        block = self._blocks.get(number)
        if block is None:
            block = self._entries_of(self.block_bytes(number))
            self._blocks[number] = block
            if len(self._blocks) > _CACHED_BLOCKS:
                self._blocks.popitem(last=False)
        return block

    def _entries_of(self, data: bytes) -> _Block:
        try:
            return _decode_entries(data)
        except (struct.error, LookupError) as error:
            raise self._corrupt("a data block is cut short") from error

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None. Reads at most one block."""
        return self.get_many((key,)).get(key)

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that are in the file. Reads each needed block once."""
        values: dict[bytes, bytes] = {}
        for key in sorted(set(keys)):
            for number in self._blocks_of(key):
                block = self._block(number)
                index = bisect_left(block.keys, key)
                if index < len(block.keys) and block.keys[index] == key:
                    values[key] = block.values[index]
        return values

    def _blocks_of(self, key: bytes) -> set[int]:
        """The data blocks that may have a key, under either order."""
        numbers = {bisect_right(self._first_keys, key) - 1}
        if key and max(key) >= layout.PLACED_UNLIKE:
            numbers.add(bisect_right(self._first_keys, layout.by_units(key), key=layout.by_units) - 1)
        return numbers - {-1}

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """Every (key, value), ascending by the bytes of the key. From the first key on that has a character beyond
        U+FFFF the entries are in memory at once."""
        for number in range(len(self._places)):
            block = self._block(number)
            if any(max(key, default=0) >= layout.BEYOND_FFFF for key in block.keys):
                yield from sorted(self._entries_from(number))
                return
            yield from zip(block.keys, block.values, strict=True)

    def _entries_from(self, first: int) -> Iterator[tuple[bytes, bytes]]:
        for number in range(first, len(self._places)):
            block = self._block(number)
            yield from zip(block.keys, block.values, strict=True)


def _trailer_numbers(data: bytes) -> dict[int, int]:
    """The numeric fields of the trailer's protobuf message."""
    length, offset = read_varint(data, 8)
    end = offset + length
    numbers: dict[int, int] = {}
    while offset < end:
        tag, offset = read_varint(data, offset)
        value, offset = read_varint(data, offset)
        if tag & 7 == 2:
            offset += value
        else:
            numbers[tag >> 3] = value
    return numbers


def _index_entries(data: bytes, count: int) -> list[tuple[bytes, tuple[int, int]]]:
    """(key, (offset, size)) of every entry of an index block."""
    entries, position = [], 0
    for _ in range(count):
        offset, size = (
            int.from_bytes(data[position : position + 8], "big"),
            int.from_bytes(data[position + 8 : position + 12], "big"),
        )
        length, position = read_vint(data, position + 12)
        entries.append((data[position : position + length], (offset, size)))
        position += length
    return entries


def _fields(data: bytes) -> dict[int, bytes]:
    """The length-delimited fields of a protobuf message, the last of each number."""
    fields, offset = {}, 0
    while offset < len(data):
        tag, offset = read_varint(data, offset)
        length, offset = read_varint(data, offset)
        fields[tag >> 3] = data[offset : offset + length]
        offset += length
    return fields


def _file_info(data: bytes) -> dict[str, bytes]:
    length, offset = read_varint(data, 4)
    end, values = offset + length, {}
    while offset < end:
        _, offset = read_varint(data, offset)
        size, offset = read_varint(data, offset)
        pair = _fields(data[offset : offset + size])
        values[pair.get(1, b"").decode()] = pair.get(2, b"")
        offset += size
    return values


def _mvcc_size(first: int) -> int:
    """Bytes of the Hadoop VLong that starts with this byte."""
    signed = first - 256 if first > 127 else first
    if signed >= -112:
        return 1
    return -119 - signed if signed < -120 else -111 - signed


def _decode_entries(data: bytes) -> _Block:
    keys, values = [], []
    unpack, offset, end = layout.ENTRY_HEAD.unpack_from, 0, len(data)
    while offset < end:
        key_size, value_size, row_size = unpack(data, offset)
        start = offset + 8 + key_size
        stop = start + value_size
        keys.append(data[offset + 10 : offset + 10 + row_size])
        values.append(data[start:stop])
        offset = stop + _mvcc_size(data[stop])
    if any(first > second for first, second in pairwise(keys)):
        pairs = sorted(zip(keys, values, strict=True))
        return _Block([key for key, _ in pairs], [value for _, value in pairs])
    return _Block(keys, values)
