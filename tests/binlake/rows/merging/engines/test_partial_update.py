"""partial_update and first_row against a dict model: the same events give the same rows, however they come."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from binlake.rows.merging.engines.first_row import FirstRow
from binlake.rows.merging.engines.partial_update import PartialUpdate
from binlake.rows.merging.states import Merger
from binlake.rows.upsert.collapse import codes_of, setting
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.merging import ROW_GROUP, STATE_FIELD
from tests.binlake.rows.merging.engines.rows import Rows, parcel

VALUES = {"a": pa.int32(), "b": pa.string(), "c": pa.decimal128(9, 2)}
SCHEMA = pa.schema(
    [*VALUES.items(), (ORDER_FIELD, pa.int64()), (ROW_GROUP.order_field, pa.int64()), (STATE_FIELD, pa.binary())]
)
FIRST = pa.schema([*VALUES.items(), (ORDER_FIELD, pa.int64()), (ROW_GROUP.order_field, pa.int64())])
#: (key, deleted, partition, a, b): the place in the list is the order at the source.
EVENT = st.tuples(
    st.sampled_from(["1", "10", "2"]),
    st.booleans() | st.just(False),
    st.integers(0, 1),
    st.none() | st.integers(0, 9),
    st.none() | st.sampled_from(["x", "y", ""]),
)
HISTORY = st.lists(EVENT, min_size=1, max_size=20)
Event = tuple[str, bool, int, int | None, str | None]


def rows_of(history: list[Event], at: list[int]) -> pa.Table:
    """These events of a history, delivered in this sequence."""
    events = [
        {"_hoodie_record_key": key, "__op": int(deleted), "__order": order, "__offset": offset, "__partition": part}
        | ({} if deleted else {"a": a, "b": b})
        for offset, order in enumerate(at)
        for key, deleted, part, a, b in [history[order]]
    ]
    return parcel(events, VALUES)


def partial_model(history: list[Event]) -> dict[str, dict[str, Any]]:
    """What partial_update makes of a history."""
    rows: dict[str, dict[str, Any]] = {}
    for key, deleted, _, a, b in history:
        if deleted:
            rows.pop(key, None)
            continue
        row = rows.setdefault(key, {"a": None, "b": None, "c": None})
        row.update({name: value for name, value in (("a", a), ("b", b)) if value is not None})
    return rows


def first_model(history: list[Event]) -> dict[str, dict[str, Any]]:
    """What first_row makes of a history."""
    rows: dict[str, dict[str, Any]] = {}
    for key, deleted, _, a, b in history:
        if not deleted:
            rows.setdefault(key, {"a": a, "b": b, "c": None})
    return rows


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[list[Event], list[list[int]]]:
    """A history, and batches of its events in any sequence, each at least once."""
    history = draw(HISTORY)
    every = list(range(len(history)))
    sequence = draw(st.permutations(every + draw(st.lists(st.sampled_from(every), max_size=8))))
    cuts = sorted(draw(st.sets(st.integers(1, len(sequence)), max_size=6)) | {len(sequence)})
    return history, [sequence[a:b] for a, b in zip([0, *cuts[:-1]], cuts, strict=True)]


def delivered(rows: Rows, merger: Merger, history: list[Event], batches: list[list[int]]) -> dict[str, dict[str, Any]]:
    for batch in batches:
        rows.merge(merger, rows_of(history, batch))
    return rows.values()


@given(deliveries())
def test_partial_update_in_any_sequence(given_: tuple[list[Event], list[list[int]]]) -> None:
    rows = Rows(SCHEMA)
    assert delivered(rows, PartialUpdate(SCHEMA, rows), *given_) == partial_model(given_[0])


@given(deliveries())
def test_first_row_in_any_sequence(given_: tuple[list[Event], list[list[int]]]) -> None:
    rows = Rows(FIRST)
    assert delivered(rows, FirstRow(FIRST, rows), *given_) == first_model(given_[0])


@given(HISTORY, st.data())
def test_partial_update_where_a_transaction_has_one_order(history: list[Event], data: st.DataObject) -> None:
    """MariaDB: several events of a key have one order. What is delivered again goes on to the end."""
    orders = sorted(data.draw(st.lists(st.integers(0, 4), min_size=len(history), max_size=len(history))))
    delivery: list[int] = []
    for end in sorted(data.draw(st.sets(st.integers(1, len(history)))) | {len(history)}):
        start = data.draw(st.integers(0, min(len(set(delivery)), end)))
        delivery += range(start, end)
    rows, offset = Rows(SCHEMA), 0
    merger = PartialUpdate(SCHEMA, rows)
    while offset < len(delivery):
        end = data.draw(st.integers(offset + 1, len(delivery)))
        table = rows_of(history, delivery[offset:end])
        columns = {"__order": [orders[at] for at in delivery[offset:end]], "__offset": list(range(offset, end))}
        for name, values in columns.items():
            table = table.set_column(table.column_names.index(name), name, pa.array(values, pa.int64()))
        parts = pa.array([0] * len(table), pa.int32())
        rows.merge(merger, table.set_column(table.column_names.index("__partition"), "__partition", parts))
        offset = end
    assert rows.values() == partial_model(history)


@given(deliveries(), st.data())
def test_events_that_set_nothing_do_not_count(given_: tuple[list[Event], list[list[int]]], data: st.DataObject) -> None:
    """Tasks leave them out: rows, their states and tombstones are the same as with all events, whatever orders are
    shared and however the events of a batch are parted among tasks."""
    history, batches = given_
    orders = data.draw(st.lists(st.integers(0, 6), min_size=len(history), max_size=len(history)).map(sorted))
    every, needed = Rows(SCHEMA), Rows(SCHEMA)
    for batch in batches:
        events = rows_of(history, batch)
        places = pa.array([orders[at] for at in batch], pa.int64())
        events = events.set_column(events.column_names.index("__order"), "__order", places)
        cut = data.draw(st.integers(0, len(events)))
        parts = [setting(part, *codes_of(part.column(KEY).combine_chunks())) for part in (events[:cut], events[cut:])]
        every.merge(PartialUpdate(SCHEMA, every), events)
        needed.merge(PartialUpdate(SCHEMA, needed), events.take(pa.array([*parts[0], *(parts[1] + cut)], pa.int64())))
        assert (needed.rows, needed.tombstones) == (every.rows, every.tombstones)


def test_events_that_set_nothing_are_left_out() -> None:
    history: list[Event] = [
        ("1", False, 0, 9, "x"),  # before a delete
        ("1", True, 0, None, None),  # before another delete
        ("1", True, 0, None, None),
        ("1", False, 0, 1, "x"),
        ("1", False, 0, 2, "y"),  # has the newest b
        ("1", False, 0, 3, None),
        ("2", False, 0, None, None),
        ("2", False, 0, 4, "z"),
    ]
    events = rows_of(history, list(range(len(history))))
    codes = codes_of(events.column(KEY).combine_chunks())
    assert setting(events, *codes).tolist() == [2, 4, 5, 7]
    assert setting(events.take(pa.array(range(7, -1, -1))), codes[0][::-1], codes[1]).tolist() == [0, 2, 3, 5]


def test_a_column_that_comes_later_is_filled_from_events_after_the_delete() -> None:
    narrow = pa.schema([f for f in SCHEMA if f.name != "c"])
    rows = Rows(narrow)
    rows.merge(PartialUpdate(narrow, rows), rows_of([("1", False, 0, 1, "x")], [0]).drop_columns(["c"]))
    rows.schema = SCHEMA
    for op, order, value in ((1, 20, None), (0, 30, None), (0, 10, 5), (0, 25, 6)):
        event = {"_hoodie_record_key": "1", "__op": op, "__order": order, "c": value}
        rows.merge(PartialUpdate(SCHEMA, rows), parcel([event], VALUES))
    assert {k: str(v["c"]) for k, v in rows.values().items()} == {"1": "6.00"}


def test_what_changes_nothing_is_superseded_and_not_written() -> None:
    rows = Rows(SCHEMA)
    merger = PartialUpdate(SCHEMA, rows)
    history: list[Event] = [("1", False, 0, 1, "x"), ("1", True, 0, None, None), ("2", False, 0, 2, None)]
    assert rows.merge(merger, rows_of(history, [0, 1, 2])).superseded == 1
    again = rows.merge(merger, rows_of(history, [0]))
    assert (again.superseded, again.write.upserts, again.write.deletes) == (1, None, None)
