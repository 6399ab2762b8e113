"""Varints, seven bits a byte and the lowest first: plain as in protobuf, zigzag as in Avro.

It stands alone: HFiles, Parquet's pages, delete blocks and the metadata table's records all have varints.
"""

from __future__ import annotations

_ONE_BYTE = tuple(bytes((number,)) for number in range(128))


def write_varint(number: int) -> bytes:
    """The varint of an unsigned number."""
    if 0 <= number < 0x80:
        return _ONE_BYTE[number]
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """(unsigned number, offset after it). Raises IndexError if the data end before the number."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


def read_zigzag(data: bytes, at: int) -> tuple[int, int]:
    """(signed number, offset after it). Raises IndexError if the data end before the number."""
    number, at = read_varint(data, at)
    return (number >> 1) ^ -(number & 1), at
