"""The rule of a backfill against a model of single rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from binlake.load.backfill.groups import MAIN
from binlake.load.backfill.read_rows import AT
from binlake.load.backfill.rule import BackfillRule, fill, newest_rows
from binlake.rows.merging.states import KeyStates
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.merging import WRITER_ORDER, ColumnGroup, Merging

OWN = ColumnGroup("backfill", ("score",))
MERGING = Merging("stitched", (MAIN, OWN))
ORDERS = st.none() | st.integers(-6, 5)  # v < 0: deleted at -v - 1
#: alive, the row's own order, the orders of main and of backfill
ROWS = st.tuples(st.booleans(), st.sampled_from([3, WRITER_ORDER]), ORDERS, ORDERS)


def stored(rows: list[tuple[bool, int, int | None, int | None]]) -> KeyStates:
    alive, plain, main, own = (list(column) for column in zip(*rows, strict=True))
    columns = {
        ORDER_FIELD: [p if a else None for a, p in zip(alive, plain, strict=True)],
        MAIN.order_field: main,
        OWN.order_field: own,
    }
    return KeyStates(np.array(alive), pa.table({n: pa.array(v, pa.int64()) for n, v in columns.items()}))


def newest(order: int | None) -> int:
    return -1 if order is None else order if order >= 0 else -order - 1


@given(
    st.lists(ROWS, min_size=1, max_size=8),
    st.integers(0, 5),
    st.booleans(),
    st.booleans(),
    st.sampled_from([MAIN, OWN]),
)
def test_rows_change_as_the_model_says(
    rows: list[tuple[bool, int, int | None, int | None]], order: int, insert: bool, whole: bool, group: ColumnGroup
) -> None:
    column = "score" if group is OWN else "owner"
    rule = BackfillRule(MERGING, group, (column,), whole, order, insert)
    keys = [f"{n}" for n in range(len(rows))]
    given_rows = pa.table({KEY: keys, column: keys, AT: list(range(len(rows)))})
    filled = fill(rule, given_rows, stored(rows))
    changes = {row[KEY]: row for table in filled.changes for row in table.to_pylist()}
    inserts = {} if filled.inserts is None else {row[KEY]: row for row in filled.inserts.to_pylist()}
    for key, (alive, plain, main, own) in zip(keys, rows, strict=True):
        known = own if group is OWN else main
        fits = order >= newest(known)
        hidden = group is OWN and main is not None and main < 0
        assert (key in changes) == (alive and fits)
        assert (key in inserts) == (not alive and insert and fits and not hidden)
        if key in changes:
            keeps = known is not None and known >= 0 and not whole
            first = plain < WRITER_ORDER and group is OWN
            expected = {KEY: key, column: key, ORDER_FIELD: WRITER_ORDER}
            expected[group.order_field] = known if keeps else order
            if first:
                expected[MAIN.order_field] = newest(main)
            assert changes[key] == expected
        if key in inserts:
            orders = {MAIN.order_field: main, OWN.order_field: own, group.order_field: order}
            assert inserts[key] == {KEY: key, column: key, ORDER_FIELD: WRITER_ORDER, **orders}
    counts = filled.counts
    assert counts.changed + counts.inserted + counts.missing + counts.older == len(rows)
    assert (counts.changed, counts.inserted) == (len(changes), len(inserts))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.randoms())
def test_the_last_row_of_a_key_counts(keys: list[int], random: object) -> None:
    at = list(range(len(keys)))
    random.shuffle(at)  # type: ignore[attr-defined]
    rows = newest_rows(pa.table({KEY: [str(key) for key in keys], AT: at}))
    assert rows.to_pylist() == [
        {KEY: str(key), AT: max(a for k, a in zip(keys, at, strict=True) if k == key)} for key in sorted(set(keys))
    ]
