"""Digests of canonical rows: one value for one row, another for any other row."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from binlake.proof.verify.canonical import RangeSums, digests
from binlake.source.database.row_packets import RowBlock, bounds_of
from hudilake.errors import CorruptDataError


def length_encoded(cell: bytes | None) -> bytes:
    """A cell as MySQL's text protocol writes it."""
    if cell is None:
        return b"\xfb"
    size = len(cell)
    head = (
        bytes([size])
        if size < 251
        else b"\xfc" + size.to_bytes(2, "little")
        if size < 1 << 16
        else b"\xfd" + size.to_bytes(3, "little")
        if size < 1 << 24
        else b"\xfe" + size.to_bytes(8, "little")
    )
    return head + cell


def block(packets: list[bytes]) -> RowBlock:
    """Packets as a reader gives them."""
    bounds = bounds_of(np.fromiter(map(len, packets), np.int64, len(packets)))
    return RowBlock(np.frombuffer(b"".join(packets), np.uint8), bounds[:-1].copy(), bounds[1:].copy())


CELLS: list[bytes | None] = [None, b"", b"x", b"\xfb", b"y" * 250, b"z" * 251, b"w" * 65_536, b"v" * (1 << 24)]


def test_packets_are_cut_into_their_cells() -> None:
    rows = [[a, b] for a in CELLS for b in CELLS[:-1]]
    packets = [b"".join(map(length_encoded, row)) for row in rows]
    first, second = block(packets).columns(2)
    assert first.to_pylist() == [a for a, _ in rows]
    assert second.to_pylist() == [b for _, b in rows]
    assert [c.to_pylist() for c in block([]).columns(2)] == [[], []]


def test_a_packet_that_is_no_row_is_an_error() -> None:
    good = length_encoded(b"ab") + length_encoded(None)
    for bad in (good[:-1], good + b"\x00", good[:1], b"\xff" + good, b"\xfc\xff\xff" + good, b"\xfe" + b"\xff" * 9):
        with pytest.raises(CorruptDataError, match="does not have the columns"):
            block([good, bad]).columns(2)


#: Pairs of cells that must not have one digest: what a lossy canonical form would take for the same.
APART = [
    (0.0, -0.0, pa.float64()),
    (0.1 + 0.2, 0.3, pa.float64()),
    (1.0, float(np.nextafter(np.float32(1), np.float32(2))), pa.float32()),
    ("", None, pa.string()),
    ("a", "a ", pa.string()),
    ("a", "A", pa.string()),
    ("\u00e9", "e\u0301", pa.string()),
    (b"", None, pa.binary()),
    (b"\x00", b"\x00\x00", pa.binary()),
    (0, None, pa.int64()),
    (False, None, pa.bool_()),
    (Decimal("1.0"), Decimal("10.0"), pa.decimal128(12, 2)),
    (Decimal(1 << 63), Decimal(-(1 << 63)), pa.decimal128(20, 0)),
    (1_700_000_000_000_000, 1_700_000_000_000_001, pa.timestamp("us", tz="UTC")),
]


@pytest.mark.parametrize(("one", "other", "kind"), APART)
def test_values_that_differ_have_other_digests(one: object, other: object, kind: pa.DataType) -> None:
    found = digests(pa.table({"id": [1, 1, 1], "v": pa.array([one, other, one], kind)}))
    assert (found.low[0], found.high[0]) != (found.low[1], found.high[1])
    assert (found.low[0], found.high[0]) == (found.low[2], found.high[2])


def test_cells_do_not_run_into_each_other() -> None:
    rows = pa.table({"a": ["ab", "a", None, ""], "b": ["c", "bc", "", None]})
    assert len(set(digests(rows).low.tolist())) == 4


def test_a_slice_and_chunks_have_the_digests_of_the_whole() -> None:
    rows = pa.table({"a": pa.array([str(i) if i % 3 else None for i in range(100)]), "b": list(range(100))})
    rows = rows.append_column("c", pa.array([i % 2 == 0 for i in range(100)]))
    whole = digests(rows).low.tolist()
    assert digests(rows.slice(37, 20)).low.tolist() == whole[37:57]
    assert digests(pa.concat_tables([rows.slice(60), rows.slice(0, 60)])).low.tolist() == whole[60:] + whole[:60]
    assert digests(rows.combine_chunks().to_batches()[0].slice(5, 3)).low.tolist() == whole[5:8]


def test_sums_do_not_depend_on_the_order_and_tell_every_change() -> None:
    rows = pa.table({"id": list(range(1000)), "v": [str(i % 7) for i in range(1000)]})
    keys, whole = digests(rows.select(["id"])).low, digests(rows)
    order = np.array(random.Random(5).sample(range(1000), 1000))
    one, other = RangeSums.empty(8), RangeSums.empty(8)
    one.add(keys, whole)
    for part in np.array_split(order, 7):
        other.add(keys[part], whole.take(part))
    assert not one.differing(other).any()
    twice = RangeSums.empty(8)
    twice.add(keys, whole)
    twice.add(keys[:1], whole.take(np.array([0])))
    assert int(one.differing(twice).sum()) == 1  # a row that is there twice is not the same as once
