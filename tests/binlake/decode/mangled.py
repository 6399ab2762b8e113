"""Messages damaged at random, for the decoders to survive."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from binlake.decode.changes import DecodedRecords

_PIECES = [
    b"null",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b'"',
    b"\\",
    b"\\ud800",
    b"1e999",
    b"NaN",
    b"-",
    b"\xff",
    b"\n",
    b"{}",
]
_BYTES = (0x00, 0x22, 0x2C, 0x5B, 0x7B, 0x7D, 0xFF)


def changed_bytes(message: bytes) -> Iterator[bytes | None]:
    """The message with each of its bytes replaced by others."""
    for i in range(len(message)):
        for byte in _BYTES:
            yield message[:i] + bytes([byte]) + message[i + 1 :]


def mangled(dice: random.Random, messages: Sequence[bytes], count: int = 1500) -> list[bytes | None]:
    """So many messages, each with some pieces put in place of others."""
    values: list[bytes | None] = []
    for _ in range(count):
        text = bytearray(dice.choice(messages))
        for _ in range(dice.randrange(1, 5)):
            at, length = dice.randrange(len(text)), dice.randrange(4)
            text[at : at + length] = dice.choice([*_PIECES, bytes([dice.randrange(256)]), text[: dice.randrange(40)]])
        values.append(bytes(text))
    return values


def check_sound(found: DecodedRecords) -> None:
    """What came through is whole."""
    for batch in found.changes:
        batch.rows.validate(full=True)


def check_neighbours(found: DecodedRecords, count: int) -> None:
    """The good messages before and behind so many damaged ones came through, and all that did is whole."""
    offsets = {offset for batch in found.changes for offset in batch.rows["__offset"].to_pylist()}
    assert {0, count + 1} <= offsets
    check_sound(found)
