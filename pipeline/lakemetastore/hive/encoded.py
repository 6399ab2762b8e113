"""Parts of answers whose bytes are there already, and how they are put together.

Large answers are never one piece of memory: they leave in pieces of some hundred partitions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

STRUCT, LIST = 12, 15
STOP = b"\x00"
_FIELD = struct.Struct("!bh")
_LIST = struct.Struct("!bi")
_TOGETHER = 512


@dataclass(frozen=True, slots=True)
class EncodedResult:
    """What a method returns, as bytes: the type's number of the binary protocol, and the value in parts."""

    kind: int
    parts: Sequence[bytes]

    def reply(self, head: bytes) -> bytes | Iterator[bytes]:
        """The whole reply, with what stands before its struct; large ones in pieces, the head whole in the first."""
        parts = [head, *only_field(self.kind, 0, self.parts)]
        if len(parts) <= 2 * _TOGETHER:
            return b"".join(parts)
        return (b"".join(parts[i : i + _TOGETHER]) for i in range(0, len(parts), _TOGETHER))


def struct_list(structs: Sequence[bytes]) -> list[bytes]:
    """A list of structs, in parts."""
    return [_LIST.pack(STRUCT, len(structs)), *structs]


def only_field(kind: int, number: int, value: Sequence[bytes]) -> list[bytes]:
    """A struct with one field, in parts: its type, its number, its value."""
    return [_FIELD.pack(kind, number), *value, STOP]
