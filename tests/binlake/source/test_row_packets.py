"""Row packets, cut from what a socket gives: whatever the pieces are, and however large a row is."""

from __future__ import annotations

import numpy as np
import pymysql
import pytest

from binlake.source.database.row_packets import PacketReader, RowBlock
from hudilake.errors import CorruptDataError

ROWS = [b"\x01a\x02bc", b"\xfb\x01x", b"\x01q\xfc\x00\x01" + b"z" * 256]
CELLS = [(b"a", b"bc"), (None, b"x"), (b"q", b"z" * 256)]
END, MOST = b"\xfe\0\0\0\0", 0xFFFFFF
LARGE = b"y" * (MOST + 1_000)


def packets(payload: bytes) -> bytes:
    """A payload with headers, in several packets if it has 16 MB."""
    parts = [payload[start : start + MOST] for start in range(0, len(payload) + 1, MOST)]
    return b"".join(len(part).to_bytes(3, "little") + b"\0" + part for part in parts)


def reader(stream: bytes, step: int) -> PacketReader:
    """A reader of a socket that gives at most ``step`` bytes at once."""
    left = [stream]

    def read_into(buffer: memoryview) -> int:
        piece, left[0] = left[0][: min(step, len(buffer))], left[0][min(step, len(buffer)) :]
        buffer[: len(piece)] = piece
        return len(piece)

    return PacketReader(read_into)


def cells(read: PacketReader, most: int, most_bytes: int = 10**9) -> list[tuple[bytes | None, ...]]:
    blocks = list(iter(lambda: read.block(most, most_bytes), None))
    assert all(len(block) <= most for block in blocks)
    return [row for block in blocks for row in zip(*(c.to_pylist() for c in block.columns(2)), strict=True)]


@pytest.mark.parametrize("step", [1, 3, 4, 5, 300, 10**6])
@pytest.mark.parametrize("most", [1, 4, 1000])
def test_rows_are_cut_from_any_pieces(step: int, most: int) -> None:
    stream = b"".join(map(packets, [*ROWS * 3, END]))
    assert cells(reader(stream, step), most) == CELLS * 3
    assert cells(reader(stream, step), most, 100) == CELLS * 3


@pytest.mark.full
@pytest.mark.parametrize("step", [5_000, 10**9])
def test_a_row_of_more_than_a_packet(step: int) -> None:
    large = b"\x01b\xfe" + len(LARGE).to_bytes(8, "little") + LARGE
    exact = b"\x01c\xfe" + (MOST - 11).to_bytes(8, "little") + b"e" * (MOST - 11)  # the last packet is empty
    stream = b"".join(map(packets, [ROWS[0], large, exact, ROWS[1], END]))
    read = cells(reader(stream, step), 100)
    assert read == [CELLS[0], (b"b", LARGE), (b"c", b"e" * (MOST - 11)), CELLS[1]]


def test_no_rows() -> None:
    read = reader(packets(END), 100)
    assert read.block(10, 10) is None
    assert read.ended


def test_what_is_no_row_is_an_error() -> None:
    refusal = b"\xff\x15\x05#70100interrupted"
    with pytest.raises(pymysql.err.Error, match="interrupted"):
        cells(reader(packets(ROWS[0]) + packets(refusal), 7), 100)
    with pytest.raises(ConnectionError, match="closed the connection"):
        cells(reader(packets(ROWS[0]), 100), 100)
    three = RowBlock(np.frombuffer(ROWS[0], dtype=np.uint8), np.array([0]), np.array([len(ROWS[0])]))
    with pytest.raises(CorruptDataError, match="does not have the columns"):
        three.columns(3)
