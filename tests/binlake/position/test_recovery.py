"""A ledger worked out from commit records alone: transactions, and tables of others."""

from __future__ import annotations

from binlake.decode.changes import SourceTable
from binlake.position.commit_record import CommitNotes, CommitRecord
from binlake.position.ledger import Ledger
from binlake.position.record_reader import RecordReader
from binlake.position.recorded import PassedTransactions, RecordedTransactions
from binlake.position.recovery import recovered
from binlake.rows.upsert.route import Counts
from binlake.rows.upsert.truncates import Truncates
from binlake.source.offsets import OffsetRange, Ranges

TOPIC = "s.transaction"


def table(name: str, start: int, end: int, ms: int, stream: str = "shop") -> tuple[str, RecordReader]:
    """A table that has one commit, of a stream of whole transactions."""
    passed = PassedTransactions(ms, (f"t-{ms}",), ())
    record = CommitRecord(
        stream,
        0,
        Counts(),
        SourceTable("shop", name),
        ranges=Ranges([OffsetRange("t", 0, start, end)]),
        notes=CommitNotes(transactions=RecordedTransactions(f"t-{ms}", False, passed, {0: ms, 1: 2 * ms})),
    )
    return f"shop/{name}", RecordReader.of_commit(record.upon({}, Truncates()).to_extra())


def test_the_newest_note_of_the_transaction_topic_counts() -> None:
    tables = [table("a", 3, 9, 70), table("b", 5, 9, 90), table("c", 4, 9, 80)]
    found = recovered("shop", tables, TOPIC)
    assert found.positions == {"t": {0: 3}, TOPIC: {0: 90, 1: 180}}
    assert found.transactions == PassedTransactions(90, ("t-90",), ())
    assert recovered("shop", tables).positions == {"t": {0: 3}}
    assert recovered("shop", tables).transactions == PassedTransactions()


def test_tables_of_other_streams_and_writers_tell_nothing() -> None:
    tables = [table("a", 3, 9, 70, "other"), ("shop/b", RecordReader.of_commit({"schema": "{}"}))]
    assert recovered("shop", tables, TOPIC) == Ledger("shop")
