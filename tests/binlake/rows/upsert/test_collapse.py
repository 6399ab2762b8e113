"""Newest per key: against a plain dict, for rows that come in order and rows that do not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.changes import ordering_value
from binlake.rows.upsert.collapse import codes_of, newest

_RANKS = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 50))
ROWS = st.lists(st.tuples(st.integers(0, 5), _RANKS), max_size=40)


def table_of(ranks: list[tuple[int, int, int]]) -> pa.Table:
    """Rows of one partition with these ordering values, row numbers and offsets."""
    columns: list[tuple[int, ...]] = list(zip(*ranks, strict=True)) or [(), (), ()]
    kinds = [pa.int64(), pa.int32(), pa.int64()]
    arrays = [pa.array(list(values), kind) for values, kind in zip(columns, kinds, strict=True)]
    table = pa.table(arrays, names=["__order", "__row", "__offset"])
    return table.append_column("__partition", pa.array([0] * len(ranks), pa.int32()))


def rank(numbers: tuple[int, int, int]) -> tuple[int, int, int]:
    """(ordering value, row, offset) in the order in which they count."""
    order, row, offset = numbers
    return order, offset, row


def oracle(rows: list[tuple[int, tuple[int, int, int]]]) -> list[int]:
    """Index of the newest row of every code; of equals the last."""
    best: dict[int, int] = {}
    for at, (code, numbers) in enumerate(rows):
        if code not in best or rank(rows[best[code]][1]) <= rank(numbers):
            best[code] = at
    return sorted(best.values())


def found(rows: list[tuple[int, tuple[int, int, int]]]) -> list[int]:
    """What the product says."""
    codes = np.array([code for code, _ in rows], dtype=np.int64)
    return [int(at) for at in newest(table_of([numbers for _, numbers in rows]), codes, 6)]


@given(ROWS)
def test_rows_in_any_order(rows: list[tuple[int, tuple[int, int, int]]]) -> None:
    assert found(rows) == oracle(rows)


@given(ROWS)
def test_rows_in_order(rows: list[tuple[int, tuple[int, int, int]]]) -> None:
    rows.sort(key=lambda row: rank(row[1]))
    assert found(rows) == oracle(rows)


def test_each_part_of_the_order_counts() -> None:
    file_9, file_10 = ordering_value(0, 9, 4_000_000_000), ordering_value(0, 10, 4)
    for older, newer in (
        ((file_9, 5, 9), (file_10, 0, 1)),  # file numbers are numbers: 10 comes after 9, whatever the position
        ((7, 2, 1), (7, 1, 9)),  # then the offset: events of a transaction may have one position, and rows from 0 each
        ((7, 1, 1), (7, 2, 1)),  # then the row inside the message
    ):
        assert found([(0, older), (0, newer)]) == [1]
        assert found([(0, newer), (0, older)]) == [0]
        assert found([(0, newer), (1, older), (0, older)]) == [0, 1]


def test_offsets_of_different_partitions_are_not_compared() -> None:
    """Two rows of one event, in another order of offsets: the row inside the event decides, for this key alone."""
    rows = table_of([(7, 1, 3), (7, 0, 9), (7, 1, 3), (7, 0, 9)])
    rows = rows.set_column(3, "__partition", pa.array([0, 1, 0, 0], pa.int32()))
    assert newest(rows, np.array([0, 0, 1, 1]), 2).tolist() == [0, 3]


def test_snapshot_rows_lose_to_any_streamed_row_of_their_epoch() -> None:
    snapshot = ordering_value(3, 0, 2**32 - 1)
    assert found([(0, (ordering_value(3, 1, 4), 0, 1)), (0, (snapshot, 0, 2))]) == [0]
    assert found([(0, (ordering_value(2, 2**20 - 1, 2**32 - 1), 0, 1)), (0, (snapshot, 0, 2))]) == [1]


def test_many_rows_out_of_order() -> None:
    rng = np.random.default_rng(7)
    ranks = [(int(o), 0, i) for i, o in enumerate(rng.permutation(20_000))]
    rows = list(zip((int(c) for c in rng.integers(0, 6, 20_000)), ranks, strict=True))
    assert found(rows) == oracle(rows)


@given(st.lists(st.tuples(st.sampled_from(["", "a", "a,b:c"]), st.sampled_from(["", "p=1", "p=é"])), max_size=20))
def test_codes_tell_key_and_path_apart(rows: list[tuple[str, str]]) -> None:
    keys, paths = pa.array([k for k, _ in rows], pa.string()), pa.array([p for _, p in rows], pa.string())
    for values, parts in ((rows, paths), ([k for k, _ in rows], None)):
        codes, size = codes_of(keys, parts)
        assert len(set(codes.tolist())) == len(set(values))
        assert len(set(zip(codes.tolist(), values, strict=True))) == len(set(values))
        assert all(0 <= code < size for code in codes.tolist())


def test_nothing_to_collapse() -> None:
    assert found([]) == []
    assert codes_of(pa.array([], pa.string()), pa.array([], pa.string()))[1] == 0
