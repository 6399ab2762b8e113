"""Transactions that are undone in a lake: random histories against a model, and what must stay as it is."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.binlake.proof.history.bank import EVENT_BYTES, Bank, Change, Row, account, gtid
from tests.hypothesis_profile import scaled

_SETTINGS = settings(
    max_examples=scaled(60, least=8), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
KEYS = range(4)


@dataclass(frozen=True)
class Step:
    """One change of a transaction: what is done to which row. ``what``: balance, owner or region of it, or delete."""

    key: int
    what: str
    value: int


STEPS = st.builds(Step, st.sampled_from(KEYS), st.sampled_from(["balance", "owner", "delete"]), st.integers(0, 3))
#: Transactions, and after each whether a batch ends.
HISTORIES = st.lists(st.tuples(st.lists(STEPS, min_size=1, max_size=3), st.booleans()), min_size=2, max_size=7)

#: Each event has a position; or all events of a transaction have one.
EVENT_SIZES = st.sampled_from([EVENT_BYTES, 0])


def change_of(rows: Mapping[int, Row], step: Step) -> Change | None:
    """The change that a step makes to the rows; None if it makes none."""
    before = rows.get(step.key)
    if step.what == "delete":
        return None if before is None else Change("a", before, None)
    after = dict(before if before is not None else account(step.key, 0))
    after[step.what] = account(step.key, step.value)["balance"] if step.what == "balance" else f"o{step.value}"
    return None if after == before else Change("a", before, after)


@contextmanager
def bank(**rules: Any) -> Iterator[Bank]:  # noqa: ANN401 - YAML
    with tempfile.TemporaryDirectory() as path:
        yield Bank(Path(path), ("a",), **rules)


def changes_of(here: Bank, steps: Sequence[Step]) -> list[Change]:
    """What some steps change in the rows, one after the other."""
    rows, changes = dict(here.rows["a"]), []
    for step in steps:
        change = change_of(rows, step)
        if change is not None:
            changes.append(change)
            rows.pop(change.key, None)
            if change.after is not None:
                rows[change.key] = change.after
    return changes


def live(here: Bank, history: Sequence[tuple[Sequence[Step], bool]]) -> list[tuple[int, list[Change]]]:
    """Run a history; the transactions with their changes, oldest first."""
    done = []
    for number, (steps, ends) in enumerate(history, 1):
        changes = changes_of(here, steps)
        if changes:
            here.transact(number, changes)
            done.append((number, changes))
        if ends and here.log.records:
            here.run_stream()
    if done:
        here.run_stream()
    return done


def replayed(done: Sequence[tuple[int, list[Change]]], without: set[int]) -> tuple[dict[int, Row | None], set[int]]:
    """The rows (None: deleted) of keys without some transactions, and the keys that later transactions changed.

    A key that a transaction after the first one left out has changed keeps what the whole history gives it.
    """
    touched = {change.key for number, changes in done if number in without for change in changes}
    last = {k: max(n for n, cs in done for c in cs if c.key == k and n in without) for k in touched}
    first = {k: min(n for n, cs in done for c in cs if c.key == k and n in without) for k in touched}
    others = {
        change.key
        for number, changes in done
        for change in changes
        if change.key in touched and number not in without and number > first[change.key]
    }
    assert set(last) == touched
    rows: dict[int, Row | None] = {}
    for number, changes in done:
        for change in changes:
            if number not in without or change.key in others:
                rows[change.key] = change.after
    for key in touched - rows.keys():
        rows[key] = None
    return rows, others


def existing(rows: Mapping[int, Row | None]) -> dict[int, Row]:
    return {key: row for key, row in rows.items() if row is not None}


@pytest.mark.full
@_SETTINGS
@given(HISTORIES, EVENT_SIZES, st.data())
def test_a_history_without_the_transaction(
    history: Sequence[tuple[Sequence[Step], bool]], event_bytes: int, data: st.DataObject
) -> None:
    """What is reverted is as if it had never been, rows that were changed later are as they were; both stay so when
    everything is delivered again; and the source's next change wins."""
    with bank(event_bytes=event_bytes) as here:
        done = live(here, history)
        if not done:
            return
        numbers = [number for number, _ in done]
        chosen = data.draw(st.sets(st.sampled_from(numbers), min_size=1, max_size=2))
        expected, kept = replayed(done, chosen)
        ids = [word for number in sorted(chosen) for word in ("--transaction", gtid(number))]
        lines = here.json("revert", *ids, "--leave-conflicts", "--yes")
        assert here.lake_rows() == existing(expected)
        assert {int(line["key"]) for line in lines if line.get("conflicts")} == kept
        assert not [line for line in here.json("revert", *ids, "--dry-run") if line.get("cells")]
        for number in numbers:
            here.deliver(number)
        here.run_stream()
        assert here.lake_rows() == existing(expected)
        key = data.draw(st.sampled_from(sorted({c.key for n, cs in done if n in chosen for c in cs})))
        before = here.rows["a"].get(key)
        here.transact(numbers[-1] + 1, [Change("a", before, account(key, 77, "last"))])
        here.run_stream()
        assert here.lake_rows() == existing({**expected, key: account(key, 77, "last")})


@_SETTINGS
@given(HISTORIES, EVENT_SIZES, st.data())
def test_columns_are_set_back_one_by_one(
    history: Sequence[tuple[Sequence[Step], bool]], event_bytes: int, data: st.DataObject
) -> None:
    """With --by-column: of the row before, the row after and the row now, what later changes left alone goes back."""
    with bank(event_bytes=event_bytes) as here:
        done = live(here, history)
        if not done:
            return
        number, changes = data.draw(st.sampled_from(done))
        now, expected = existing(dict(here.rows["a"])), dict[int, Row | None](here.rows["a"])
        for key in {change.key for change in changes}:
            mine = [change for change in changes if change.key == key]
            later = [c for n, cs in done if n > number for c in cs if c.key == key]
            expected[key] = merged(mine, now.get(key), later)
        here.json("revert", "--transaction", gtid(number), "--by-column", "--leave-conflicts", "--yes")
        assert here.lake_rows() == existing(expected)


def merged(mine: Sequence[Change], now: Row | None, later: Sequence[Change]) -> Row | None:
    """A row after one transaction of it is undone, by a rule over the ends of the transaction alone."""
    before, after = mine[0].before, mine[-1].after
    if not later:
        return before
    if before is None or after is None or now is None or any(c.before is None or c.after is None for c in mine):
        return now  # a row that came or went is not told column by column
    row = dict(now)
    for change in reversed(mine):
        assert change.before is not None
        assert change.after is not None
        for name, value in change.after.items():
            if change.before[name] != value and row[name] == value:
                row[name] = change.before[name]
    return row
