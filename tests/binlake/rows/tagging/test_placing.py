"""What becomes of events, given where their rows are, against plain rules row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.changes import Op
from binlake.rows.tagging.events import KeyEvents, joined, newest_events
from binlake.rows.tagging.placing import UNREAD, EventPlaces, Whereabouts, placed
from binlake.rows.upsert.route import MOVED_AWAY
from hudilake.format.definition.keys import KeyScope
from tests.binlake.rows.upsert.test_merge import PARCEL

PATHS = ["region=ap", "region=eu", "region=us"]
#: (partition, key, op, order): of one key each.
EVENTS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 30), st.sampled_from([0, 0, 1]), st.integers(0, 9)),
    min_size=1,
    max_size=30,
    unique_by=lambda event: event[1],
)
#: For each key where its row is: (partition, order), or none.
STORED = st.dictionaries(st.integers(0, 30), st.tuples(st.integers(0, 2), st.integers(0, 9)))


def key_events(events: Sequence[tuple[int, int, int, int]]) -> KeyEvents:
    """Events of (partition, key, op, order); the place in the list is value and offset."""
    tables = {}
    for number, path in enumerate(PATHS):
        mine = [
            dict(zip(PARCEL.names, (str(key), at, op, order, 0, at, 0), strict=True))
            for at, (part, key, op, order) in enumerate(events)
            if part == number
        ]
        tables[path] = pa.Table.from_pylist(mine, schema=PARCEL)
    return joined(tables)


def where(events: KeyEvents, stored: dict[int, tuple[int, int]], *, read: bool) -> Whereabouts:
    """Where rows are: each in a file group of its partition."""
    found = [stored.get(int(key)) for key in events.keys.to_pylist()]
    paths = [None if f is None else PATHS[f[0]] for f in found]
    ids = [None if f is None else f"group-{f[0]}" for f in found]
    orders = [UNREAD if f is None or not read else f[1] for f in found]
    return Whereabouts(pa.array(paths, pa.string()), pa.array(ids, pa.string()), np.array(orders, dtype=np.int64))


def told(
    events: KeyEvents, at: Whereabouts, what: EventPlaces, scope: KeyScope
) -> tuple[set[tuple[str, str, int]], set[tuple[str, str]], set[tuple[str, int]]]:
    """(changes as (key, file group, op), inserts as (key, partition), deleted)."""
    keys, paths, ids = events.keys.to_pylist(), events.paths.to_pylist(), at.file_ids.to_pylist()
    ops, names = events.rows.column("__op").to_pylist(), events.names(scope).to_pylist()
    changes = {(keys[n], ids[n], ops[n]) for n in what.changes.tolist()}
    changes |= {(keys[n], ids[n], MOVED_AWAY) for n in what.moves.tolist()}
    inserts = {(keys[n], paths[n]) for n in what.inserts.tolist()}
    return changes, inserts, {(names[n], int(events.orders[n])) for n in what.deletes.tolist()}


@given(EVENTS, STORED)
def test_events_of_a_global_index(events: list[tuple[int, int, int, int]], stored: dict[int, tuple[int, int]]) -> None:
    changes, inserts, deleted = set(), set(), set()
    for part, key, op, order in events:
        at = stored.get(key)
        if at is not None and order < at[1]:
            continue
        if op == Op.DELETE:
            deleted.add((str(key), order))
        if at is None:
            inserts |= {(str(key), PATHS[part])} if op == Op.UPSERT else set()
        elif op == Op.UPSERT and at[0] != part:
            inserts.add((str(key), PATHS[part]))
            changes.add((str(key), f"group-{at[0]}", MOVED_AWAY))
        else:
            changes.add((str(key), f"group-{at[0]}", op))
    mine = key_events(events)
    rows = where(mine, stored, read=True)
    what = placed(mine, rows, KeyScope(by_partition=False))
    assert told(mine, rows, what, KeyScope(by_partition=False)) == (changes, inserts, deleted)


@given(EVENTS, STORED)
def test_rows_of_other_indexes_stay_in_their_partition(
    events: list[tuple[int, int, int, int]], stored: dict[int, tuple[int, int]]
) -> None:
    stored = {key: (part, stored[key][1]) for part, key, _, _ in events if key in stored}
    mine = key_events(events)
    at = where(mine, stored, read=False)
    what = placed(mine, at, KeyScope(by_partition=True))
    names = {str(key): f"{PATHS[part]}\0{key}" for part, key, _, _ in events}
    assert told(mine, at, what, KeyScope(by_partition=True)) == (
        {(str(key), f"group-{part}", op) for part, key, op, _ in events if key in stored},
        {(str(key), PATHS[part]) for part, key, op, _ in events if key not in stored and op == Op.UPSERT},
        {(names[str(key)], order) for _, key, op, order in events if op == Op.DELETE},
    )
    assert not len(what.moves)


def test_a_move_is_one_event_of_a_global_index() -> None:
    moved = [(0, 1, 0, 5), (1, 1, MOVED_AWAY, 5)]
    events = key_events(moved)
    events = KeyEvents(events.rows.set_column(5, "__offset", pa.array([0, 0])), events.paths)
    kept = newest_events(events, KeyScope(by_partition=False))
    assert (kept.rows.column("__op").to_pylist(), kept.paths.to_pylist()) == ([0], ["region=ap"])
    assert len(newest_events(events, KeyScope(by_partition=True))) == 2
