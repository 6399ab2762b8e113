"""What a file group's log file will hold, from the rows of any number of parcels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.changes import Op
from binlake.rows.merging.truncate import truncated
from binlake.rows.upsert.merge import merge, records
from binlake.rows.upsert.route import KEY, MOVED_AWAY
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.rows.upsert.truncates import Truncates

PARCEL = pa.schema(
    [
        (KEY, pa.string()),
        ("v", pa.int32()),
        ("__op", pa.int8()),
        ("__order", pa.int64()),
        ("__row", pa.int32()),
        ("__offset", pa.int64()),
        ("__partition", pa.int32()),
    ]
)
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["1", "10", "2", "é"]),
        st.sampled_from([0, 0, 1, MOVED_AWAY]),
        st.integers(0, 3),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=30,
)


def parcel_rows(events: Sequence[tuple[str, int, int, int]]) -> pa.Table:
    """Rows of (key, op, order, row); value and offset are the place in the list."""
    rows = [(key, at, op, order, row, at, 0) for at, (key, op, order, row) in enumerate(events)]
    return pa.Table.from_pylist([dict(zip(PARCEL.names, r, strict=True)) for r in rows], schema=PARCEL)


def plain(table: pa.Table | None) -> list[dict[str, Any]]:
    """Rows, none for None."""
    return [] if table is None else table.to_pylist()


@given(EVENTS)
def test_merge_against_a_dict(events: list[tuple[str, int, int, int]]) -> None:
    newest: dict[str, tuple[int, int, int]] = {}
    for at, (key, _, order, row) in enumerate(events):
        newest[key] = max(newest.get(key, (-1, -1, -1)), (order, at, row))
    write, superseded = merge(("p=1", 3), "id-0", parcel_rows(events))
    kept = {key: events[at] for key, (_, at, _) in newest.items()}
    assert (write.partition_path, write.file_id) == ("p=1", "id-0")
    assert plain(write.upserts) == [
        {KEY: key, "v": newest[key][1], ORDER_FIELD: kept[key][2]} for key in sorted(kept) if kept[key][1] == Op.UPSERT
    ]
    assert plain(write.deletes) == [
        {KEY: key, ORDER_FIELD: kept[key][2]} for key in sorted(kept) if kept[key][1] != Op.UPSERT
    ]
    own = [event for event in events if event[1] != MOVED_AWAY]
    assert superseded == len(own) - sum(event[1] != MOVED_AWAY for event in kept.values())


def test_a_side_without_rows_is_none() -> None:
    upserts, _ = merge(("", 0), "i", parcel_rows([("1", Op.UPSERT, 1, 0)]))
    assert upserts.deletes is None
    deletes, _ = merge(("", 0), "i", parcel_rows([("1", Op.DELETE, 1, 0)]))
    assert deletes.upserts is None
    assert plain(deletes.deletes) == [{KEY: "1", ORDER_FIELD: 1}]


def test_chunked_rows_of_many_parcels() -> None:
    events = [(str(n % 50), Op.UPSERT, n, 0) for n in range(500)]
    rows = parcel_rows(events)
    chunked = pa.concat_tables([rows.slice(at, 7) for at in range(0, 500, 7)])
    assert merge(("", 0), "i", chunked)[0].upserts.equals(merge(("", 0), "i", rows)[0].upserts)  # type: ignore[union-attr]
    assert merge(("", 0), "i", chunked)[1] == 450


def test_what_counts_as_a_record() -> None:
    assert records(parcel_rows([("1", Op.UPSERT, 1, 0), ("2", Op.DELETE, 1, 0), ("3", MOVED_AWAY, 1, 0)])) == 2
    assert records(parcel_rows([("1", Op.UPSERT, 1, 0)]).slice(0, 0)) == 0


def test_a_truncate_takes_what_is_not_newer() -> None:
    stored = pa.table({KEY: ["1", "2", "3"], ORDER_FIELD: pa.array([4, 5, 6], pa.int64())})
    gone = truncated(stored, Truncates(5))
    assert gone.column(KEY).to_pylist() == ["1", "2"]
    assert set(gone.column("__order").to_pylist()) == {5}
    assert records(gone) == 0
    later = parcel_rows([("1", Op.UPSERT, 7, 0), ("9", Op.UPSERT, 8, 0)])
    write, superseded = merge(("", 0), "i", pa.concat_tables([gone, later], promote_options="default"))
    assert [r[KEY] for r in plain(write.upserts)] == ["1", "9"]
    assert plain(write.deletes) == [{KEY: "2", ORDER_FIELD: 5}]
    assert superseded == 0
    assert len(truncated(stored, Truncates(3))) == 0
