"""Parts of answers whose bytes are there already, and how they are put together."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

STRUCT, LIST = 12, 15
STOP = b"\x00"
_FIELD = struct.Struct("!bh")
_LIST = struct.Struct("!bi")


@dataclass(frozen=True, slots=True)
class Encoded:
    """What a method returns, as bytes: the type's number of the binary protocol, and the value."""

    kind: int
    data: bytes

    def result(self) -> bytes:
        """The bytes of the method's result struct."""
        return b"".join((_FIELD.pack(self.kind, 0), self.data, STOP))


def struct_list(structs: Sequence[bytes]) -> bytes:
    """A list of structs."""
    return b"".join((_LIST.pack(STRUCT, len(structs)), *structs))


def field(kind: int, number: int, data: bytes) -> bytes:
    """A field of a struct: its type, its number, its value."""
    return _FIELD.pack(kind, number) + data
