"""Tables without a key: a multiset, kept right over repeats, delays and debts."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.changes import Op, ordering_value
from binlake.rows.upsert import keyless
from binlake.rows.upsert.keyless import DIGEST_FIELD, KeyedRows, KeylessState, LiveRow, digests, resolve
from binlake.rows.upsert.parcel import unpack
from binlake.rows.upsert.route import KEY, AppliedRecords, route
from binlake.rows.upsert.target import ROW_FIELD
from tests.binlake.rows.upsert.ingest import change_batch, placed, table_rules
from tests.binlake.rows.upsert.test_route import row, target_of
from tests.model import Change, Delivered, Shape

SHAPE = Shape((), "region", "identity", "region")
A, B = row(1), row(2)
BASE = ordering_value(0, 3, 0)


class Table:
    """A keyless table in memory: what Hudi makes of the writes, by ordering value."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], tuple[int, str | None, dict[str, Any] | None]] = {}
        self.state = KeylessState()
        self.offset = 0
        self.asked: list[frozenset[str]] = []

    def batch(self, *changes: Change, repeat_offsets: bool = False) -> KeyedRows:
        """Apply some changes as one batch."""
        if repeat_offsets:
            self.offset -= len(changes)
        records = [Delivered(change, 0, self.offset + at) for at, change in enumerate(changes)]
        self.offset += len(changes)
        events = unpack(
            route(placed(change_batch(SHAPE, records), table_rules(SHAPE, 4)), AppliedRecords(), -1).parcels
        )
        resolved = resolve(events, target_of(SHAPE), self.state, self.live)
        for path, written in zip(resolved.paths.to_pylist(), resolved.rows.to_pylist(), strict=True):
            place = (path, written[KEY])
            if place not in self.rows or self.rows[place][0] <= written["__order"]:
                gone = written["__op"] != Op.UPSERT
                self.rows[place] = (
                    written["__order"],
                    None if gone else written[DIGEST_FIELD],
                    None if gone else written,
                )
        self.state = KeylessState.from_text(self.state.to_text())
        return resolved

    def live(self, wanted: frozenset[str]) -> dict[str, list[LiveRow]]:
        """What ``LakeTable.live_rows`` gives."""
        self.asked.append(wanted)
        found: dict[str, list[LiveRow]] = {}
        for (path, key), (order, digest, _) in self.rows.items():
            if digest in wanted:
                found.setdefault(str(digest), []).append((order, path, key))
        return found

    def codes(self) -> list[tuple[int, str]]:
        """(id, partition path) of the live rows, sorted."""
        return sorted((values["id"], path) for (path, _), (_, _, values) in self.rows.items() if values is not None)


def come(at: int, values: dict[str, Any], number: int = 0) -> Change:
    """A streamed insert."""
    return Change(BASE + at, number, None, values)


def go(at: int, values: dict[str, Any], number: int = 0) -> Change:
    """A streamed delete."""
    return Change(BASE + at, number, values, None)


def snapshot(values: dict[str, Any]) -> Change:
    """A snapshot's row."""
    return Change(1_700_000_000, 0, None, values)


def test_equal_rows_are_told_apart_by_their_place_in_the_binlog() -> None:
    table = Table()
    made = table.batch(come(1, A, 0), come(1, A, 1), come(2, A))
    assert table.codes() == [(1, "region=eu")] * 3
    assert made.rows.column(ROW_FIELD).to_pylist() == made.rows.column(KEY).to_pylist()
    assert len(set(made.rows.column(KEY).to_pylist())) == 3
    assert table.asked == []  # nothing is looked up where nothing goes


def test_snapshot_rows_are_told_apart_by_their_records() -> None:
    table = Table()
    table.batch(snapshot(A), snapshot(A))
    table.batch(snapshot(A), snapshot(A), repeat_offsets=True)
    assert table.codes() == [(1, "region=eu")] * 2


def test_a_delete_takes_one_of_its_equals() -> None:
    table = Table()
    table.batch(snapshot(A), come(1, A), come(2, A), come(3, B))
    table.batch(go(4, A))
    assert table.codes() == [(1, "region=eu"), (1, "region=eu"), (2, "region=eu")]
    table.batch(go(5, A), go(6, A), go(7, B))
    assert table.codes() == []


def test_rows_come_and_go_in_one_batch() -> None:
    table = Table()
    made = table.batch(come(1, A), go(2, A), come(3, A), go(4, A), come(5, A))
    assert table.codes() == [(1, "region=eu")]
    assert made.superseded == 0


def test_an_update_is_the_old_row_going_and_the_new_one_coming() -> None:
    table = Table()
    table.batch(come(1, A), come(2, A))
    moved = {**A, "region": "us"}
    table.batch(Change(BASE + 3, 0, A, moved))
    assert table.codes() == [(1, "region=eu"), (1, "region=us")]
    table.batch(Change(BASE + 3, 0, A, moved))
    assert table.codes() == [(1, "region=eu"), (1, "region=us")]


@pytest.mark.parametrize("split", [False, True], ids=["one batch", "two batches"])
def test_what_was_applied_is_not_applied_again(split: bool) -> None:
    table = Table()
    history = [come(1, A), come(2, A), go(3, A), come(4, B), go(5, B)]
    made = [table.batch(*history), table.batch(*history)] if split else [table.batch(*history, *history)]
    assert table.codes() == [(1, "region=eu")]
    assert sum(m.superseded for m in made) == 5


def test_a_repeated_insert_whose_row_has_gone_takes_no_later_delete() -> None:
    """The connector starts again before the insert, and goes on to new equal rows in the same batch."""
    table = Table()
    table.batch(come(1, A), go(2, A))
    table.batch(come(1, A), go(2, A), come(3, A), go(4, A))
    assert table.codes() == []


def test_a_delete_that_comes_first_is_owed() -> None:
    table = Table()
    table.batch(go(2, A))
    assert [debt[1:] for debt in table.state.debts] == [(BASE + 2, 0)]
    made = table.batch(come(1, A))
    assert (table.codes(), table.state.debts, made.superseded) == ([], [], 1)
    table.batch(come(1, A))  # and the repeated insert does not come back
    assert table.codes() == []
    table.batch(come(3, A))
    assert table.codes() == [(1, "region=eu")]


def test_a_late_delete_takes_a_row_that_came_after_it() -> None:
    """Equal rows are the same row: what counts is how many are left, whichever the delete was meant for."""
    table = Table()
    table.batch(come(1, A), come(5, A))
    table.batch(go(6, A))
    table.batch(go(2, A))
    assert table.codes() == []
    table = Table()
    table.batch(come(1, A))
    table.batch(go(6, A))
    table.batch(come(5, A))
    table.batch(go(2, A))
    assert table.codes() == []


@pytest.mark.parametrize("split", [False, True], ids=["one batch", "a batch for each"])
def test_events_of_one_position_are_told_apart_by_their_content(split: bool) -> None:
    """MariaDB 11.4 gives all events of a transaction the same position; row numbers begin at 0 in each."""
    third = row(3)
    changes = [come(1, A), come(1, B), come(1, third), go(1, A), Change(BASE + 1, 0, B, {**B, "region": "us"})]
    table = Table()
    for _ in range(2):  # the second time it is all a redelivery
        for part in [[change] for change in changes] if split else [changes]:
            table.batch(*part)
        assert table.codes() == [(2, "region=us"), (3, "region=eu")]
    table.state = table.state.of_any_content()
    table.batch(come(1, {**third, "code": "as after a statement"}))
    assert table.codes() == [(2, "region=us"), (3, "region=eu")]
    assert table.state.debts == []


def test_the_order_of_file_numbers_of_different_length() -> None:
    """Record keys are texts; the oldest row goes first by number."""
    table = Table()
    early, late = ordering_value(0, 2, 10), ordering_value(0, 3, 10)
    assert str(early) > str(late)
    table.batch(Change(early, 0, None, A), Change(late, 0, None, A))
    table.batch(Change(late - 1, 0, A, None))
    assert table.codes() == [(1, "region=eu")]
    ((_, key),) = [place for place, (_, digest, _) in table.rows.items() if digest]
    assert key == f"{late}-0"


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyless, "WINDOW", 10)
    table = Table()
    for at in range(0, 100, 2):
        table.batch(come(at, A), go(at + 1, A))
    assert len(table.state.applied) == 10
    assert max(table.state.applied)[0] == BASE + 99


def test_a_full_memory_stays_small_in_a_commit() -> None:
    marks = random.Random(1)
    halves = {(BASE + 150 * at, at % 3, marks.getrandbits(29)) for at in range(keyless.WINDOW)}
    text = KeylessState(halves, [("ab" * 16, BASE, 3)]).to_text()
    assert KeylessState.from_text(text) == KeylessState(halves, [("ab" * 16, BASE, 3)])
    assert len(text) < 60_000
    assert set(json.loads(text)) == {"applied", "debts"}


def test_states() -> None:
    assert KeylessState.from_text(None) == KeylessState()
    assert KeylessState.from_text(KeylessState().to_text()) == KeylessState()
    state = KeylessState({(1, 2, 0)}, [("d", 1, 2)])
    copy = state.copy()
    copy.applied.clear()
    copy.debts.clear()
    assert state == KeylessState({(1, 2, 0)}, [("d", 1, 2)])


def test_digests() -> None:
    def mark(**columns: tuple[Any, pa.DataType]) -> str:
        rows = pa.table({name: pa.array([value], kind) for name, (value, kind) in columns.items()})
        return digests(rows, list(columns))[0]

    text, whole = pa.string(), pa.int32()
    base = mark(a=("x", text), b=(1, whole))
    assert base == mark(b=(1, whole), a=("x", text))
    assert base == mark(a=("x", text), b=(1, pa.int64()), c=(None, text))  # widened, and a column added
    assert base != mark(a=("x", text), b=(2, whole))
    assert base != mark(a=("x", text), c=(1, whole))
    assert mark(a=("1", text)) != mark(a=(b"1", pa.binary()))
    assert mark(a=(None, text)) != mark(a=("", text))
    assert mark(f=(0.1, pa.float32())) == mark(f=(0.10000002, pa.float32()))
    assert mark(f=(0.1, pa.float64())) != mark(f=(0.10000002, pa.float64()))


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([A, B, {**A, "region": None}])), max_size=12),
    st.randoms(use_true_random=False),
    st.lists(st.integers(0, 11), max_size=8),
    st.integers(1, 5),
)
def test_any_order_repeats_and_cuts_give_the_same_multiset(
    script: list[tuple[bool, dict[str, Any]]],
    order: random.Random,
    repeats: list[int],
    size: int,
) -> None:
    held: list[dict[str, Any]] = []
    changes = []
    for at, (comes, values) in enumerate(script):
        if comes or values not in held:
            held.append(values)
            changes.append(come(at, values))
        else:
            held.remove(values)
            changes.append(go(at, values))
    delivered = changes + [changes[at] for at in repeats if at < len(changes)]
    order.shuffle(delivered)
    table = Table()
    for start in range(0, len(delivered), size):
        table.batch(*delivered[start : start + size])
    assert Counter(table.codes()) == Counter((values["id"], SHAPE.path(values)) for values in held)
    assert table.state.debts == []


def test_a_delete_that_finds_no_row_is_a_finding_and_takes_no_later_row() -> None:
    table = Table()
    table.batch(come(1, A))
    table.batch(go(2, B), Change(BASE + 3, 0, row(3), A))  # a delete and an update of rows that the lake lacks
    assert table.state.unmatched == 2
    assert str(table.state.finding).startswith("2 deletes or former halves of updates found no row of their content")
    assert "000003:2" in str(table.state.finding)
    table.batch(go(2, B), Change(BASE + 3, 0, row(3), A))  # delivered again
    assert table.state.unmatched == 2
    table.batch(come(4, B))
    assert table.codes() == [(1, "region=eu"), (1, "region=eu"), (2, "region=eu")]
    assert table.state.unmatched == 2
    table.batch(come(1, B, 5))  # late: this one was meant
    assert table.state.unmatched == 1
    table.state.removed_until(BASE + 3)
    assert (table.state.unmatched, table.state.finding) == (0, None)


def test_findings_are_bounded_and_still_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyless, "WINDOW", 10)
    table = Table()
    table.batch(*(go(at, row(at)) for at in range(25)))
    table.batch(*(go(at, row(at)) for at in range(25, 30)))
    assert (len(table.state.debts), table.state.unmatched) == (10, 30)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([A, B])), max_size=14),
    st.lists(st.tuples(st.integers(0, 13), st.integers(1, 4)), max_size=3),
    st.integers(1, 5),
)
def test_rows_that_the_lake_lacks_are_counted_whatever_the_cuts_and_repeats(
    script: list[tuple[int, dict[str, Any]]], restarts: list[tuple[int, int]], size: int
) -> None:
    """In order, as one partition delivers: each delete that matches nothing is counted once, and takes nothing."""
    held: list[dict[str, Any]] = []
    lacking = 0
    changes = []
    for at, (kind, values) in enumerate(script):
        changes.append(come(at, values) if kind else go(at, values))
        if kind:
            held.append(values)
        elif values in held:
            held.remove(values)
        else:
            lacking += 1
    delivered = list(changes)
    for at, back in sorted(restarts, reverse=True):  # the connector starts again a few events earlier
        if at < len(changes):
            delivered[at:at] = changes[max(0, at - back) : at]
    table = Table()
    for start in range(0, len(delivered), size):
        table.batch(*delivered[start : start + size])
    assert Counter(id for id, _ in table.codes()) == Counter(values["id"] for values in held)
    assert table.state.unmatched == lacking
