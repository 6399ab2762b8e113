"""Derives a stream's position from the commit records of the tables: when its ledger is lost, or after a first load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from binlake.decode.changes import SourceTable
from binlake.decode.order import file_number
from binlake.position.ledger import Ledger
from binlake.position.record_reader import RecordReader
from binlake.position.recorded import NO_TRANSACTIONS
from binlake.source.database.snapshot import SourcePosition
from binlake.source.offsets import NO_OFFSETS, Offsets


def recovered(stream: str, tables: Iterable[tuple[str, RecordReader]], transaction_topic: str | None = None) -> Ledger:
    """A ledger derived from the tables' newest commits; an empty one if no table belongs to this stream.

    A batch begins only after every table has committed the batch before. Everything below the start of any table's
    newest commit is therefore in all tables, so the stream starts at the oldest of these starts. Tables that have
    applied more drop the records again as already applied.

    Args:
        stream: the stream's name.
        tables: the path of every table below the lake's root, and the newest values of its commit records.
        transaction_topic: the topic of the transactions; None for a stream that may split transactions.
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
            passed = note.passed  # this commit's batch held whole transactions only
            positions = Offsets({**positions, transaction_topic: note.offsets})
        positions = positions.earliest(newest_start(record, stream))
    return Ledger(stream, positions=positions, tables=paths, transactions=passed)


def of_replays(stream: str, tables: Mapping[str, RecordReader], quarantine: str) -> Ledger | None:
    """A ledger of a lake that replays of dumps alone have fed; None if a table has positions of the stream.

    Args:
        stream: the stream's name.
        tables: the newest values of the commit records, by the path of the table.
        quarantine: the path of the quarantine table, which no source feeds.
    """
    if any(record.positions_of(stream) for record in tables.values()):
        return None
    sources = {path: record.source for path, record in tables.items() if path != quarantine}
    return Ledger(stream, tables={source: path for path, source in sources.items() if source is not None})


def newest_start(record: RecordReader, stream: str) -> Offsets:
    """The start offsets of a table's newest commit; for partitions that it did not cover, the stream's position."""
    standing = record.positions_of(stream)
    return standing.earliest(record.ranges.starts().within(standing))  # another stream's commit may be ahead


def oldest_position(tables: Iterable[RecordReader]) -> SourcePosition | None:
    """The position from which the changes of all loaded tables go on; None if no table was loaded.

    Tables may be loaded at several positions: each leaves out the changes up to its own. Positions are compared by the
    number of the binlog's file, then by the place in it.

    ``tables``: the newest values of the commit records of every table.
    """
    positions = [load.position for record in tables if (load := record.load) is not None]
    return min(positions, key=lambda one: (file_number(one.file), one.position), default=None)
