"""Where a stream of a binlog begins: at its own position, if the binlog is still the one that it read; else behind the
first load of its tables; else where the settings say.

An offset means a file's number and a position, so another binlog must not pass for the one that was read. The topic
names the server. The ledger keeps, as the topic's id, the file of its position and when the server began that file: a
binlog that was reset and has grown since has files of the same names, but not of the same times.
"""

from __future__ import annotations

from collections.abc import Callable

from binlake.position.ledger import Ledger
from binlake.source.binlog.places import PARTITION, BinlogServer, offset_at, offset_of, place_of
from binlake.source.binlog.reading import BinlogSource
from binlake.source.binlog.topic import is_binlog, topic_of
from binlake.source.database.snapshot import SourcePosition
from hudilake.errors import BadInputError

_ANEW = "give the stream a new name and a new lake path, and load the tables"


def begin(source: BinlogSource, ledger: Ledger, start: str, loaded: Callable[[], SourcePosition | None]) -> int:
    """Set the ledger's position, and return it.

    Args:
        source: the binlog.
        ledger: of the stream.
        start: as ``source.mysql.start``, for a stream without a position whose tables were not loaded.
        loaded: the oldest position at which a table was loaded; asked for a stream without a position.

    Raises BadInputError where the server no longer has the position, or another binlog answers; ConfigError,
    TransientError.
    """
    server, positions = source.server, ledger.positions
    _check_server(server, ledger)
    if positions.knows(server.topic, PARTITION):
        offset = positions.at(server.topic, PARTITION)
        _check_file(source, ledger, server.file_of(place_of(offset)))
    else:
        position = loaded()
        offset = first_offset(server, start) if position is None else _offset_behind(server, position)
        note_file(source, ledger, server.file_of(place_of(offset)))
    ledger.begin_at({server.topic: {PARTITION: offset}})
    return offset


def note_file(source: BinlogSource, ledger: Ledger, file: str) -> None:
    """Note in the ledger which file the stream has come to, unless it is noted; the caller saves the ledger.

    Raises TransientError, ConfigError.
    """
    if ledger.topic_ids.get(source.topic, "").partition(" ")[0] != file:
        ledger.note_topic_ids({source.topic: f"{file} {source.created(file)}"})


def first_offset(server: BinlogServer, start: str) -> int:
    """The offset of a new stream. ``start``: as ``source.mysql.start``. Raises BadInputError, ConfigError."""
    if start == "now":
        return server.end
    if start == "earliest":
        return server.start
    offset = offset_at(start)
    server.file_of(place_of(offset))
    return offset


def _offset_behind(server: BinlogServer, loaded: SourcePosition) -> int:
    if server.mariadb and server.topic != topic_of(loaded.server_id):
        raise BadInputError(
            f"the tables were loaded from server {loaded.server_id}, and {server.topic} answers now: its binlog has "
            "other positions",
            do_next="correct source.database, or load the tables again (binlake load --replace)",
            topic=server.topic,
        )
    offset = offset_of(loaded.file, loaded.position)
    server.file_of(place_of(offset))
    return offset


def _check_server(server: BinlogServer, ledger: Ledger) -> None:
    others = sorted(topic for topic in ledger.positions if is_binlog(topic) and topic != server.topic)
    if others:
        raise BadInputError(
            f"the stream has read {', '.join(others)}, and {server.topic} answers now: its positions mean other events",
            do_next=f"correct source.database; after a failover {_ANEW}",
            topic=server.topic,
        )


def _check_file(source: BinlogSource, ledger: Ledger, file: str) -> None:
    noted, _, seconds = ledger.topic_ids.get(source.topic, "").partition(" ")
    if noted == file and int(seconds) != source.created(file):
        raise BadInputError(
            f"the server began {file} at another time than the file of that name that the stream has read: its binlog "
            "was reset",
            do_next=_ANEW,
            topic=source.topic,
        )
    note_file(source, ledger, file)
