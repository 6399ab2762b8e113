"""Which states of several tables their commits declare."""

from __future__ import annotations

from dataclasses import dataclass, replace

from binlake.position.commit_record import CommitNotes, CommitRecord
from binlake.position.cuts import declared_cuts
from binlake.position.recorded import NO_TRANSACTIONS, RecordedTransactions
from binlake.rows.upsert.route import Counts
from binlake.source.offsets import Offsets, Ranges


@dataclass(frozen=True)
class Committed:
    """A commit as a table's history has it."""

    requested: str
    completed: str
    extra: dict[str, str]


def commit(
    at: int, until: int, after: int | None, split: bool = False, stream: str = "shop", last: str | None = None
) -> Committed:
    """A commit at a time, of a batch that ended and began at these offsets of the transaction topic."""
    note = RecordedTransactions(last, split, NO_TRANSACTIONS, {0: until}, None if after is None else {0: after})
    ranges = Ranges(Offsets({"t": {0: 0}}).ranges_to(Offsets({"t": {0: until}})))
    record = CommitRecord(stream, 1, Counts(), ranges=ranges, positions={stream: Offsets({"t": {0: until}})})
    return Committed(f"{at:017}", f"{at + 1:017}", replace(record, notes=CommitNotes(transactions=note)).to_extra())


def cuts(*histories: list[Committed]) -> list[tuple[int, list[int]]]:
    """The place of each cut, and the commit of each table there."""
    found = declared_cuts("shop", {f"table {n}": history for n, history in enumerate(histories)})
    return [(cut.place[0], [int(at) for at in cut.commits.values()]) for cut in found]


def test_a_batch_declares_where_it_began() -> None:
    first = [commit(10, 5, None), commit(30, 9, 5), commit(50, 12, 9)]
    second = [commit(20, 5, None), commit(60, 12, 9)]
    assert cuts(first, second) == [(5, [10, 20]), (9, [30, 20])]


def test_the_newest_state_is_none_yet() -> None:
    assert cuts([commit(10, 5, None)], [commit(20, 5, None)]) == []


def test_a_batch_that_died_between_two_commits_declares_nothing() -> None:
    """The first table has a commit of it; it is cut again further on."""
    first = [commit(10, 5, None), commit(30, 7, 5), commit(40, 9, 5), commit(70, 12, 9)]
    second = [commit(20, 5, None), commit(50, 9, 5), commit(80, 12, 9)]
    assert cuts(first, second) == [(5, [10, 20]), (9, [40, 50])]


def test_a_commit_beyond_the_place_was_there_before_it() -> None:
    """The batch is cut again nearer: the first table stays ahead."""
    first = [commit(10, 5, None), commit(30, 9, 5)]
    second = [commit(20, 5, None), commit(50, 7, 5), commit(60, 12, 7)]
    assert cuts(first, second) == [(5, [10, 20])]


def test_a_split_batch_ends_at_no_cut() -> None:
    first = [commit(10, 5, None), commit(30, 9, 5, split=True), commit(50, 12, 9)]
    assert cuts(first) == [(5, [10])]


def test_a_table_without_a_known_commit_leaves_the_cut_out() -> None:
    first = [commit(10, 5, None), commit(30, 9, 5), commit(50, 12, 9)]
    assert cuts(first, [commit(40, 9, 5)]) == [(9, [30, 40])]


def test_commits_of_other_streams_and_writers_are_not_looked_at() -> None:
    first = [commit(10, 5, None), commit(30, 9, 5), Committed("9" * 17, "9" * 17, {})]
    assert cuts([*first, commit(40, 3, 1, stream="other")]) == [(5, [10])]


def test_a_table_that_was_restored_is_no_part_of_what_it_had() -> None:
    """The second table had a commit of the batch that ended at 9; its rows came again with the one that ends at 15."""
    first = [commit(10, 5, None), commit(30, 9, 5), commit(50, 12, 9), commit(90, 15, None), commit(110, 18, 15)]
    second = [commit(20, 5, None), commit(100, 15, None)]
    assert cuts(first, second) == [(5, [10, 20]), (15, [90, 100])]


def test_nor_before_the_stream_has_noticed() -> None:
    first, second = [commit(10, 5, None), commit(30, 9, 5), commit(50, 12, 9)], [commit(20, 5, None)]
    found = declared_cuts("shop", {"first": first, "second": second}, {"second": [f"{60:017}"]})
    assert [cut.place[0] for cut in found] == [5]


def test_a_commit_that_says_no_place_is_not_passed_over() -> None:
    """One of a time when transactions could be split, or that caught a table up before the first batch of a process."""
    silent = commit(40, 9, 5)
    extra = {name: text for name, text in silent.extra.items() if "transactions" not in name}
    assert extra != silent.extra
    first = [commit(10, 5, None), commit(30, 9, 5), commit(50, 12, 9)]
    assert cuts(first, [commit(20, 5, None), replace(silent, extra=extra)]) == [(5, [10, 20])]


def test_the_ledger_says_that_the_newest_state_is_one() -> None:
    first, second = [commit(10, 5, None), commit(30, 9, 5)], [commit(20, 5, None)]
    found = declared_cuts("shop", {"first": first, "second": second}, newest={0: 9})
    assert [(cut.place[0], [int(at) for at in cut.commits.values()]) for cut in found] == [(5, [10, 20]), (9, [30, 20])]


def test_a_batch_of_transactions_that_came_again_has_no_name() -> None:
    """The state behind it is that of the newest one, which an earlier batch had."""
    names = ((10, 5, "0-1-9"), (30, 9, "0-1-12"), (50, 12, "0-1-11"), (70, 15, "0-2-3"), (90, 18, "0-1-13"))
    first, after = [], None
    for at, until, last in names:
        first.append(commit(at, until, after, last=last))
        after = until
    found = declared_cuts("shop", {"first": first}, newest={0: 18})
    assert [(cut.place[0], cut.transaction) for cut in found] == [
        (5, "0-1-9"),
        (9, "0-1-12"),
        (12, None),
        (15, "0-2-3"),
        (18, "0-1-13"),
    ]
