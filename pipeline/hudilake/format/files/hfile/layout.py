"""The HFile version 3 dialect of Hudi's metadata table: magics, codecs and Hadoop's integers, for both sides.

An HFile is data blocks, meta blocks, the data index, the meta index, the file info and a trailer of 4096 bytes.
Rules: Hudi's native reader and writer; vectors in ``tests/data/golden/vectors.json``.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum
from functools import lru_cache

from hudilake.errors import CorruptDataError, UnsupportedError

DATA_MAGIC = b"DATABLK*"
META_MAGIC = b"METABLKc"
INDEX_MAGIC = b"IDXROOT2"
FILE_INFO_MAGIC = b"FILEINF2"
TRAILER_MAGIC = b'TRABLK"$'
TRAILER_BYTES = 4096
COMPARATOR = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"

#: magic, on-disk size without header, uncompressed size without header, offset of the previous block, checksum type,
#: bytes per checksum, on-disk size of the data with header.
BLOCK_HEADER = struct.Struct(">8siiqbii")
#: key length, value length, length of the row key.
ENTRY_HEAD = struct.Struct(">iih")
#: The suffix of a key after its row key: family length 0, the largest timestamp, type Put.
KEY_TAIL = b"\x00\x7f\xff\xff\xff\xff\xff\xff\xff\x04"
KEY_EXTRA = 2 + len(KEY_TAIL)
#: Bytes of an entry besides its row key and value; Hudi's measure of block and index sizes.
ENTRY_EXTRA = 21

#: One checksum of four bytes for any block: with Java's 16384, Hudi 1.2.0 loses the last entries of a large block,
#: for its reader takes the checksum bytes off a size that does not hold them (measured).
ONE_CHECKSUM = 1 << 30
BLOCK_SIZE = 1 << 20

SCHEMA_KEY = "schema"
MIN_RECORD_KEY = "minRecordKey"
MAX_RECORD_KEY = "maxRecordKey"


class Codec(IntEnum):
    """Compression of the blocks, by HBase's ids. Hudi writes GZIP."""

    GZIP = 1
    NONE = 2


def codec_of(number: int) -> Codec:
    """The codec with that id. Raises UnsupportedError for one that Hudi's metadata table does not use."""
    try:
        return Codec(number)
    except ValueError:
        raise UnsupportedError(f"HFile codec {number} is not supported", do_next="let Hudi rewrite the file") from None


def compress(codec: Codec, data: bytes, level: int = 4) -> bytes:
    """A block's bytes as they are on storage."""
    if codec is Codec.NONE:
        return data
    return zlib.compress(data, level, wbits=31) if data else _nothing(level)


@lru_cache(maxsize=16)
def _nothing(level: int) -> bytes:
    """An empty block, which most files have as the index of their meta blocks."""
    return zlib.compress(b"", level, wbits=31)


def decompress(codec: Codec, data: bytes, size: int) -> bytes:
    """A block's bytes, ``size`` of them. Raises CorruptDataError."""
    if codec is Codec.NONE:
        return data[:size]
    try:
        plain = zlib.decompress(data, wbits=31, bufsize=size)
    except zlib.error as error:
        raise CorruptDataError("an HFile block does not decompress", do_next="rebuild the metadata table") from error
    if len(plain) != size:
        raise CorruptDataError("an HFile block has a wrong size", do_next="rebuild the metadata table")
    return plain


def checksum_bytes(data_with_header: int, bytes_per_checksum: int) -> int:
    """How many checksum bytes (all zero: the checksum type is NULL) follow a block's data."""
    return 4 * -(-data_with_header // bytes_per_checksum)


def write_vint(number: int) -> bytes:
    """Hadoop's ``WritableUtils.writeVInt`` of a number that is not negative."""
    if number <= 127:
        return bytes((number,))
    body = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return bytes((0x90 - len(body),)) + body


def read_vint(data: bytes, offset: int) -> tuple[int, int]:
    """(number, offset after it); the counterpart of ``write_vint``."""
    first = data[offset]
    if first < 0x80:
        return first, offset + 1
    end = offset + 1 + (0x90 - first)
    return int.from_bytes(data[offset + 1 : end], "big"), end


#: Java compares texts by UTF-16 units, so characters beyond U+FFFF (first byte 0xF0 and more) come before U+E000 to
#: U+FFFF (0xEE and 0xEF). Keys without such bytes have the same place in either order.
PLACED_UNLIKE, BEYOND_FFFF = 0xEE, 0xF0


def by_units(key: bytes) -> bytes:
    """A key as it must be compared to have Java's order: Hudi's compactions of the metadata table leave it."""
    return key.decode("utf-8", "surrogateescape").encode("utf-16-be", "surrogatepass")
