"""Transactions: all or nothing, in the order asked for, and refused where another writer was first."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import hudilake
from tests.hudilake.api.tables import assert_holds, keyed, row


def test_several_writes_are_one_commit(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(n, 1) for n in range(5)])
    with table.transaction({"job": "nightly"}) as transaction:
        transaction.upsert([row(1, 2, "b"), row(9, 1)])
        transaction.upsert([row(1, 1, "older than the one before")])
        transaction.delete([row(0, 0), row(9, 0)])
        assert table.count() == 5  # nothing is visible yet
    assert_holds(table, [row(1, 2, "b"), *(row(n, 1) for n in (2, 3, 4))])
    newest = table.history()[0]
    assert (newest.requested, newest.extra["job"]) == (transaction.instant, "nightly")
    assert len(table.history()) == 2


def test_an_error_in_the_block_leaves_nothing(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1)])
    transaction = table.transaction(isolated=True)
    with contextlib.suppress(ZeroDivisionError), transaction:
        transaction.upsert([row(2, 1)])
        raise ZeroDivisionError
    assert transaction.instant is None
    assert len(table.history()) == 1
    assert_holds(table, [row(1, 1)])


def test_a_failure_while_files_are_written_leaves_nothing(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1)])
    blocked = tmp_path / "t" / "day=new"
    blocked.write_text("a file where the partition shall be")
    with pytest.raises(hudilake.StorageError):
        table.upsert([row(2, 1), row(3, 1, day="new")])
    blocked.unlink()
    assert_holds(table, [row(1, 1)])
    table.upsert([row(2, 1), row(3, 1, day="new")])
    assert_holds(table, [row(1, 1), row(2, 1), row(3, 1, day="new")])


def test_nothing_to_write_is_no_commit(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    with table.transaction():
        pass
    assert table.history() == []


def test_an_ended_transaction_takes_no_more(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    transaction = table.transaction()
    transaction.upsert([row(1, 1)])
    transaction.rollback()
    with pytest.raises(hudilake.ConfigError, match="has ended"):
        transaction.upsert([row(1, 1)])
    with pytest.raises(hudilake.ConfigError, match="has ended"):
        transaction.commit()
    assert table.history() == []


def test_a_key_deleted_and_upserted_again_is_refused(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1), row(2, 1)])
    transaction = table.transaction()
    transaction.delete([row(1, 0)])
    transaction.upsert([row(1, 3), row(2, 3)])
    with pytest.raises(hudilake.ConfigError, match="deletes a key and upserts it afterwards"):
        transaction.commit()
    assert_holds(table, [row(1, 1), row(2, 1)])


def test_two_writers_of_one_file_group_conflict(tmp_path: Path) -> None:
    mine = keyed(tmp_path / "t", buckets=1)
    theirs = hudilake.open_table(mine.uri)
    transaction = mine.transaction(isolated=True)
    transaction.upsert([row(3, 1, "mine")])
    theirs.upsert([row(3, 2, "theirs")])
    with pytest.raises(hudilake.OvertakenError):
        transaction.commit()
    mine.refresh()
    assert_holds(mine, [row(3, 2, "theirs")])
    mine.upsert([row(3, 3, "mine, again")])
    assert_holds(mine, [row(3, 3, "mine, again")])


def test_isolation_counts_what_others_write_elsewhere_and_its_absence_does_not(tmp_path: Path) -> None:
    mine = keyed(tmp_path / "t", buckets=1)
    mine.upsert([row(0, 1)])
    theirs = hudilake.open_table(mine.uri)
    with mine.transaction() as transaction:  # the control: another file group does not conflict
        transaction.upsert([row(1, 1)])
        theirs.upsert([row(2, 1)])
    isolated = mine.transaction(isolated=True)
    isolated.upsert([row(4, 1)])
    theirs.upsert([row(5, 1)])
    with pytest.raises(hudilake.OvertakenError):
        isolated.commit()
    mine.refresh()
    assert_holds(mine, [row(n, 1) for n in (0, 1, 2, 5)])


def test_writes_of_two_tables_in_turns_are_done_again_where_they_must(tmp_path: Path) -> None:
    one = keyed(tmp_path / "t", buckets=1)
    other = hudilake.open_table(one.uri)
    for order in range(4):
        one.upsert([row(3, 2 * order)])
        other.upsert([row(3, 2 * order + 1)])
    other.refresh()
    assert_holds(other, [row(3, 7)])
    assert len(other.history()) == 8
