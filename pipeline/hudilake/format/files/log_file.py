"""The log file container: typed blocks, each with a header of texts, its content, and its length once more at its end.

Big-endian throughout; layout version 1, as Hudi 1.x writes it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from hudilake.errors import CorruptDataError

MAGIC = b"#HUDI#"
_VERSION = 1
_PREFIX = struct.Struct(">qii")  # block length, version, block type
_INT = struct.Struct(">i")
_PAIR = struct.Struct(">ii")
_LONG = struct.Struct(">q")


class BlockType(IntEnum):
    """The type of a block's content."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class Header(IntEnum):
    """Keys of a block's header that binlake reads or writes."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


_KEYS = frozenset(map(int, Header))


@dataclass(frozen=True, slots=True)
class LogBlock:
    """One block. ``content`` is a view of the file's bytes; ``offset`` is where its magic stands in the file."""

    block_type: BlockType
    header: Mapping[int, str]
    content: memoryview
    offset: int

    @property
    def instant(self) -> str | None:
        """The commit that wrote it; None if the header lacks it (readers drop such a block)."""
        return self.header.get(Header.INSTANT_TIME)

    @property
    def is_partial(self) -> bool:
        """Whether its rows have a part of the table's columns."""
        return self.header.get(Header.IS_PARTIAL, "false") != "false"


def encode_block(block_type: BlockType, header: Mapping[int, str], content: bytes) -> bytes:
    """One block, from the magic to the reverse pointer. ``header``: texts by key, ascending; content as it is."""
    texts = _texts(header)
    length = 4 + 4 + len(texts) + 8 + len(content) + 4 + 8
    return b"".join(
        [
            MAGIC,
            _PREFIX.pack(length, _VERSION, block_type),
            texts,
            _LONG.pack(len(content)),
            content,
            _INT.pack(0),
            _LONG.pack(length + len(MAGIC)),
        ]
    )


def encode_data_block(instant: str, schema_json: str, parquet: bytes, *, partial: bool = False) -> bytes:
    """A PARQUET_DATA block. ``parquet``: a whole file; ``schema_json``: its Avro schema. Both with the meta fields.
    ``partial``: the rows have a part of the table's columns."""
    header: dict[int, str] = {Header.INSTANT_TIME: instant, Header.SCHEMA: schema_json}
    if partial:
        header[Header.IS_PARTIAL] = "true"
    return encode_block(BlockType.PARQUET_DATA, header, parquet)


def encode_delete_block(instant: str, schema_json: str, content: bytes) -> bytes:
    """A DELETE block. ``content``: from ``delete_block.encode_deletes``."""
    return encode_block(BlockType.DELETE, {Header.INSTANT_TIME: instant, Header.SCHEMA: schema_json}, content)


def iter_blocks(data: bytes, path: str = "") -> Iterator[LogBlock]:
    """The blocks of a log file, in order. Damaged blocks are left out, as Hudi does.

    A block is valid only if its two lengths agree and the magic of another block, or the end, follows; otherwise
    reading continues at the next magic (``HoodieLogFileReader``). Raises CorruptDataError, as Hudi does, for bytes
    before the first magic, and for a block whose lengths agree but whose content cannot be parsed.
    """
    view = memoryview(data)
    position = 0
    while position + len(MAGIC) <= len(data):
        if view[position : position + len(MAGIC)] != MAGIC:
            raise CorruptDataError(
                "a log file has no block where one must start", do_next="run binlake fsck", path=path, offset=position
            )
        start = position + len(MAGIC)
        length = _sound_length(view, start)
        if length is None:
            position = data.find(MAGIC, start)
            if position < 0:
                return
            continue
        try:
            yield _decode_block(view, start, length, position)
        except (struct.error, ValueError) as error:
            raise CorruptDataError(
                f"a log block cannot be read: {error}", do_next="run binlake fsck", path=path, offset=position
            ) from error
        position = start + 8 + length


def whole_blocks(data: bytes, path: str = "") -> list[LogBlock]:
    """The blocks of a log file of which all are needed. Raises CorruptDataError for a file with a damaged block, with
    bytes outside of blocks, or without any block."""
    blocks = list(iter_blocks(data, path))
    lengths = [_LONG.unpack_from(data, block.offset + len(MAGIC))[0] for block in blocks]
    if not blocks or sum(lengths) + len(blocks) * (len(MAGIC) + 8) != len(data):
        raise CorruptDataError("a log file is damaged", do_next="run binlake fsck", path=path)
    return blocks


def _sound_length(view: memoryview, start: int) -> int | None:
    """The length of the block whose length field is at ``start``; None if it is cut short or followed by junk."""
    if start + 8 > len(view):
        return None
    (length,) = _LONG.unpack_from(view, start)
    end = start + 8 + length
    if length < 28 or end > len(view):
        return None
    (pointer,) = _LONG.unpack_from(view, end - 8)
    if pointer - len(MAGIC) != length:
        return None
    after = view[end : end + len(MAGIC)]
    return length if len(after) < len(MAGIC) or after == MAGIC else None


def _decode_block(view: memoryview, start: int, length: int, offset: int) -> LogBlock:
    _, version, kind = _PREFIX.unpack_from(view, start)
    if version != _VERSION:
        raise ValueError(f"log format version {version}")
    header, position = _read_texts(view, start + _PREFIX.size)
    if unknown := header.keys() - _KEYS:
        raise ValueError(f"header key {min(unknown)}, which may say what its rows mean")
    (size,) = _LONG.unpack_from(view, position)
    content = view[position + 8 : position + 8 + size]
    if size < 0 or position + 8 + size + 12 > start + 8 + length or len(content) != size:
        raise ValueError(f"content of {size} bytes does not fit into its block")
    return LogBlock(BlockType(kind), header, content, offset)


def _texts(texts: Mapping[int, str]) -> bytes:
    parts = [_INT.pack(len(texts))]
    for key, text in texts.items():
        encoded = text.encode("utf-8")
        parts += [_PAIR.pack(key, len(encoded)), encoded]
    return b"".join(parts)


def _read_texts(view: memoryview, offset: int) -> tuple[dict[int, str], int]:
    (count,) = _INT.unpack_from(view, offset)
    offset += 4
    texts: dict[int, str] = {}
    for _ in range(count):
        key, size = _PAIR.unpack_from(view, offset)
        offset += 8
        if size < 0 or offset + size > len(view):
            raise ValueError(f"header text of {size} bytes")
        texts[key] = str(view[offset : offset + size], "utf-8")
        offset += size
    return texts, offset
