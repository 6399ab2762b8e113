"""Finding a stream's place again when its ledger is lost: the commit records of the tables tell it."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.decode.changes import SourceTable
from pipeline.position.ledger import Ledger
from pipeline.position.record_reader import RecordReader
from pipeline.position.recorded import NO_TRANSACTIONS
from pipeline.source.offsets import NO_OFFSETS, Offsets


def recovered(stream: str, tables: Iterable[tuple[str, RecordReader]], transaction_topic: str | None = None) -> Ledger:
    """A ledger worked out from the tables' newest commits; an empty one where no table is of this stream.

    A batch begins only after every table has committed the one before. So all that lies below the beginning of any
    table's newest commit is in all tables; the oldest of these beginnings is right to start from, and what some
    tables have beyond it they drop as applied.

    Args:
        stream: the stream's name.
        tables: the path of every table below the lake's root, and the newest values of its commits' records.
        transaction_topic: the topic that tells transactions; None for a stream that may split them.
    """
    paths: dict[SourceTable, str] = {}
    positions, passed = NO_OFFSETS, NO_TRANSACTIONS
    for path, record in tables:
        source = record.source
        if source is None or not record.positions_of(stream):
            continue
        paths[source] = path
        note = record.transactions if transaction_topic is not None else None
        if transaction_topic is not None and note is not None and note.passed.ms > passed.ms:
            passed = note.passed  # whatever this commit's batch held was whole
            positions = Offsets({**positions, transaction_topic: note.offsets})
        positions = positions.earliest(newest_start(record, stream))
    return Ledger(stream, positions=positions, tables=paths, transactions=passed)


def newest_start(record: RecordReader, stream: str) -> Offsets:
    """Where the batch of a table's newest commit began; for partitions that it did not cover, the stream's position."""
    standing = record.positions_of(stream)
    return standing.earliest(record.ranges.starts().within(standing))  # another stream's commit may be further on
