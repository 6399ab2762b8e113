"""Reverts of single transactions in any order, while the stream goes on: random histories against the plain model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from binlake.proof.history.undo import Obstacle
from binlake.source.offsets import Offsets
from tests.binlake.proof.history.bank import Bank, Change, Row, account, gtid
from tests.binlake.proof.history.test_undo import Step, bank, changes_of, existing
from tests.hypothesis_profile import scaled

_SETTINGS = settings(
    max_examples=scaled(150, divisor=10),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
STEPS = st.builds(Step, st.sampled_from([0, 0, 1]), st.sampled_from(["balance", "owner", "delete"]), st.integers(0, 1))
TRANSACTIONS = st.lists(STEPS, min_size=1, max_size=2)
REVERTS = st.tuples(st.just("revert"), st.sets(st.integers(1, 8), min_size=1, max_size=3))
DELIVERIES = st.tuples(st.just("deliver"), st.integers(1, 8))
BEGINNINGS = st.lists(TRANSACTIONS, min_size=4, max_size=6)
SET = Step(0, "balance", 0)
GONE = Step(0, "delete", 0)
ACTIONS = st.lists(st.one_of(TRANSACTIONS, REVERTS, REVERTS, DELIVERIES), min_size=4, max_size=8)


@dataclass
class Entry:
    """A change of a row, its transaction's number, and whether it is undone."""

    number: int
    change: Change
    undone: bool = False


@dataclass
class Model:
    """The rows of a history without the reverted transactions; what stands above or below keeps a row as it is."""

    entries: dict[int, list[Entry]] = field(default_factory=dict)

    def add(self, number: int, changes: Sequence[Change]) -> None:
        for change in changes:
            self.entries.setdefault(change.key, []).append(Entry(number, change))

    def revert(self, numbers: set[int]) -> set[int]:
        """Revert transactions; the keys of rows that are left."""
        return {key for key, mine in self.entries.items() if not self._undo(mine, numbers)}

    @staticmethod
    def _undo(mine: list[Entry], numbers: set[int]) -> bool:
        stands = max((at + 1 for at, entry in enumerate(mine) if not entry.undone), default=0)
        wanted = [entry for entry in mine[:stands] if entry.number in numbers]
        if not wanted:
            return True
        first = mine.index(wanted[0])
        if first and mine[first - 1].undone:
            return False
        if any(not entry.undone and entry not in wanted for entry in mine[first:]):
            return False
        for entry in wanted:
            entry.undone = True
        return True

    def rows(self) -> dict[int, Row]:
        """Each row as the last standing change left it."""
        standing = {key: [e.change.after for e in mine if not e.undone] for key, mine in self.entries.items()}
        return existing({key: after[-1] if after else None for key, after in standing.items()})


def transacted(here: Bank, model: Model, number: int, steps: Sequence[Step]) -> bool:
    """Make a transaction of some steps; false if it changes nothing."""
    changes = changes_of(here, steps)
    if changes:
        here.transact(number, changes)
        model.add(number, changes)
    return bool(changes)


@pytest.mark.full
@_SETTINGS
@given(BEGINNINGS, ACTIONS, st.booleans())
@example([[SET], [GONE]], [("revert", {1, 2}), ("revert", {1}), [SET], ("deliver", 1)], False)
@example([[SET], [GONE]], [("revert", {1, 2}), ("revert", {2}), [SET], ("revert", {3})], True)
@example([[SET, GONE]], [("revert", {1}), [SET], ("revert", {1, 2})], False)
@example([[SET], [Step(0, "balance", 1)], [SET]], [("revert", {2, 3}), ("revert", {3}), ("revert", {2})], False)
def test_reverts_in_any_order(beginning: list[list[Step]], actions: list[Any], compacted: bool) -> None:
    """Also again, of what was reverted, beside deletes and inserts, with deliveries and transactions between."""
    rules = {"compaction": {"mode": "process", "after_commits": 2, "log_ratio": None}} if compacted else {}
    with bank(**rules) as here:
        model, last = Model(), 0
        for action in [*beginning, *actions]:
            if isinstance(action, list):
                last += transacted(here, model, last + 1, action)
                continue
            what, chosen = action
            if what == "deliver" and chosen in here.transactions:
                here.deliver(chosen)
            if what == "revert" and (numbers := chosen & here.transactions.keys()):
                here.run_stream()
                ids = [word for number in sorted(numbers) for word in ("--transaction", gtid(number))]
                lines = here.json("revert", *ids, "--leave-conflicts", "--yes")
                left = {int(line["key"]) for line in lines if line.get("conflicts")}
                assert left == model.revert(numbers), (action, here.transactions)
                assert here.lake_rows() == model.rows()
        for number in here.transactions:
            here.deliver(number)
        if here.transactions:
            here.run_stream()
            assert here.lake_rows() == model.rows()


def balances(path: Path, *values: int) -> Bank:
    """One row whose balance each transaction sets to the next value; the first inserts it."""
    here = Bank(path, ("a",))
    for number, value in enumerate(values, 1):
        before = here.rows["a"].get(1)
        here.transact(number, [Change("a", before, account(1, value))])
    here.run_stream()
    return here


def obstacles(here: Bank, *numbers: int) -> list[str]:
    ids = [word for number in numbers for word in ("--transaction", gtid(number))]
    lines = here.json("revert", *ids, "--leave-conflicts", "--yes")
    return [conflict for line in lines for conflict in line.get("conflicts", ())]


def test_the_last_transactions_one_by_one(tmp_path: Path) -> None:
    here = balances(tmp_path, 0, 1, 2, 3, 4, 5, 6, 7)
    for number in range(8, 1, -1):
        assert obstacles(here, number) == []
        assert here.lake_rows() == {1: account(1, number - 2)}
    for number in range(2, 9):
        assert obstacles(here, number) == []
        assert here.lake_rows() == {1: account(1, 0)}


def test_a_change_between_that_brought_the_same_value(tmp_path: Path) -> None:
    """The row is as the earlier transaction left it, and yet others have changed it since."""
    here = balances(tmp_path, 0, 1, 2, 1, 3)
    assert obstacles(here, 5) == []
    assert obstacles(here, 2) != []
    assert obstacles(here, 2, 5) != []
    assert here.lake_rows() == {1: account(1, 1)}


def test_a_part_of_what_was_reverted_is_reverted_again(tmp_path: Path) -> None:
    here = balances(tmp_path, 0, 1, 0, 2)
    assert obstacles(here, 2, 3, 4) == []
    assert obstacles(here, 3, 4) == []
    assert here.lake_rows() == {1: account(1, 0)}


def test_a_change_above_one_that_was_reverted(tmp_path: Path) -> None:
    """Its before image holds what was reverted: alone it stays, together both go."""
    here = balances(tmp_path, 0, 1)
    assert obstacles(here, 2) == []
    here.transact(3, [Change("a", account(1, 1), account(1, 2))])
    here.run_stream()
    assert obstacles(here, 3) != []
    assert here.lake_rows() == {1: account(1, 2)}
    assert obstacles(here, 2, 3) == []
    assert here.lake_rows() == {1: account(1, 0)}


def test_columns_one_after_the_other(tmp_path: Path) -> None:
    here = balances(tmp_path, 0, 1)
    here.transact(3, [Change("a", account(1, 1), account(1, 1, "b"))])
    here.run_stream()
    for number, row in ((2, account(1, 0, "b")), (3, account(1, 0))):
        here.json("revert", "--transaction", gtid(number), "--by-column", "--yes")
        assert here.lake_rows() == {1: row}


@pytest.mark.parametrize(("gone", "said"), [(1, Obstacle.REVERTED_BEFORE), (2, Obstacle.UNKNOWN_BEFORE)])
def test_kafka_without_the_change_before(tmp_path: Path, gone: int, said: Obstacle) -> None:
    """What an earlier revert may have undone is not taken for undisturbed."""
    here = balances(tmp_path, 0, 1)
    assert obstacles(here, 2) == []
    here.transact(3, [Change("a", None, account(2, 5))])
    here.transact(4, [Change("a", account(1, 1), account(1, 2))])
    here.run_stream()
    here.low = Offsets({"s.shop.a": {0: gone}})
    assert str(said) in str(obstacles(here, 4))
    assert here.lake_rows() == {1: account(1, 2), 2: account(2, 5)}
    if gone == 1:  # no revert has written the row's file group
        assert obstacles(here, 3) == []
