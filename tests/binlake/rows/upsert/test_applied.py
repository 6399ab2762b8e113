"""Which records a table has applied: those below an offset, and ranges besides."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from binlake.rows.upsert.route import AppliedRecords
from binlake.source.offsets import OffsetRange, Ranges

RANGES = st.lists(
    st.builds(OffsetRange, st.just("t"), st.integers(0, 2), st.integers(0, 20), st.integers(20, 40)), max_size=6
).map(lambda some: Ranges(some).united())


@given(
    st.dictionaries(st.integers(0, 2), st.integers(0, 40)),
    RANGES,
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 45))),
)
def test_rows_of_applied_records_are_not_fresh(
    until: dict[int, int], delivered: Ranges, rows: list[tuple[int, int]]
) -> None:
    table = pa.table(
        {
            "__partition": pa.array([partition for partition, _ in rows], pa.int32()),
            "__offset": pa.array([offset for _, offset in rows], pa.int64()),
        }
    )
    has = {(one.partition, offset) for one in delivered for offset in range(one.start, one.end)}
    wanted = [row not in has and row[1] >= until.get(row[0], 0) for row in rows]
    assert AppliedRecords(until, delivered).fresh(table).tolist() == wanted
