"""Damages bytes at random: bits, numbers, pieces, structure, and parts of other inputs."""

from __future__ import annotations

import random
from collections.abc import Sequence

#: Pieces of JSON that decoders stumble over.
_SIGNS = (
    rb"""null true {} [] "" { } [ ] , : " \ \u0000 \ud800 \udfff NaN Infinity - -0 -0.0 1e999 1e-999 0x10 1. .5 01"""
)
_NUMBERS = b"9223372036854775807 9223372036854775808 -9223372036854775809 18446744073709551616 0.1 0000-00-00 838:59:59"
_BYTES = [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x00", b"\n", b" ", b"\xe2\x80\xa8"]
_JSON = [*_SIGNS.split(), *_NUMBERS.split(), *_BYTES, b"1" * 40, b"[" * 70, b'{"a":' * 70]
#: Numbers at the ends of their types, in the widths and orders of binary files.
_EDGES = [
    0,
    1,
    2,
    127,
    128,
    255,
    256,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
]


def mutated(dice: random.Random, seeds: Sequence[bytes], *, text: bool) -> bytes:
    """One of the seeds with one to four changes. ``text``: pieces of JSON are used too."""
    data = bytearray(dice.choice(seeds))
    for _ in range(dice.choice((1, 1, 1, 2, 3, 4))):
        _change(dice, data, seeds, text=text)
    return bytes(data)


def _change(dice: random.Random, data: bytearray, seeds: Sequence[bytes], *, text: bool) -> None:
    at = dice.randrange(len(data) + 1)
    end = min(len(data), at + dice.choice((1, 1, 2, 4, 8, 30, 300)))
    kind = dice.randrange(9 if text else 7)
    if kind == 0 and at < len(data):
        data[at] ^= 1 << dice.randrange(8)
    elif kind == 1 and at < len(data):
        data[at] = dice.randrange(256)
    elif kind == 2:
        del data[at:end]
    elif kind == 3:
        data[at:at] = data[at:end] * dice.choice((1, 1, 2, 50))
    elif kind == 4:
        other = dice.choice(seeds)
        start = dice.randrange(len(other) + 1)
        data[at:end] = other[start : start + dice.choice((1, 4, 16, 200))]
    elif kind == 5:
        width = dice.choice((1, 2, 4, 8))
        number = dice.choice(_EDGES) & (1 << 8 * width) - 1
        data[at : at + width] = number.to_bytes(width, dice.choice(("big", "little")))
    elif kind == 6:
        del data[at:]
    else:
        data[at : end if kind == 7 else at] = dice.choice(_JSON)
