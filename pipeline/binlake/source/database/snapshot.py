"""A consistent snapshot of the source, and the position of the binlog that it stands at.

MariaDB tells the position with the snapshot. MySQL does not: a global read lock is held while the snapshot begins, for
milliseconds. Without the right to it, or where the lock is not granted at once, the position is noted a moment before
the snapshot begins: a transaction is in the binlog a little before it is visible. The snapshot may then show later
changes too, whose events have higher ordering values. A replica is read in the same way, and says how far its
primary's binlog is applied.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from binlake.decode.order import binlog_order
from binlake.settings import SourceSettings
from hudilake.errors import ConfigError, LakeError, TransientError

if TYPE_CHECKING:
    from binlake.source.database.connection import SourceConnection  # a position alone needs no database driver

#: So long after its place in the binlog a transaction is visible.
_VISIBLE_AFTER_S = 1.0
_BEGIN = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
_LOCK, _UNLOCK = "FLUSH TABLES WITH READ LOCK", "UNLOCK TABLES"


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A place between two transactions in the binlog that the stream carries.

    Args:
        file: of the binlog.
        position: in it; all transactions that end at or before it are in the snapshot.
        server_id: of the server that wrote the binlog.
        gtid: the transactions up to there, where the server names them; for people.
        exact: whether the snapshot shows no later change.
    """

    file: str
    position: int
    server_id: int
    gtid: str | None = None
    exact: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.position}" + (f" ({self.gtid})" if self.gtid else "")

    def order(self, source: SourceSettings) -> int:
        """The ordering value of the place: changes up to it are in the snapshot.

        Raises ConfigError if the file's name has no number or a part is too large.
        """
        epoch = source.epoch_of_server.get(self.server_id, source.epoch)
        try:
            return binlog_order(epoch, self.file, self.position)
        except OverflowError as error:
            raise ConfigError(
                f"the binlog position {self} cannot be ordered: {error}", do_next="name the binlog files as MySQL does"
            ) from error

    def to_json(self) -> list[str | int | None]:
        """The four values in a list."""
        return [self.file, self.position, self.server_id, self.gtid]

    @staticmethod
    def from_json(said: list[str | int | None]) -> SourcePosition:
        """The reverse of ``to_json``. Raises ValueError, TypeError for other data."""
        file, position, server_id, gtid = said
        if not isinstance(position, int) or not isinstance(server_id, int):
            raise TypeError("a position and a server's number are whole numbers")
        return SourcePosition(str(file), position, server_id, None if gtid is None else str(gtid))


@contextlib.contextmanager
def snapshot(connection: SourceConnection, *, replica: bool) -> Iterator[SourcePosition]:
    """A read-only transaction that sees the source as of one position, for the length of the ``with`` block.

    ``replica``: the connection leads to a replica; the position is that of its primary.

    Raises ConfigError (no binlog, no rights), TransientError.
    """
    position = _begin(connection, replica=replica)
    try:
        yield position
    finally:
        _end(connection)


@contextlib.contextmanager
def snapshots(connections: Sequence[SourceConnection], *, replica: bool) -> Iterator[list[SourcePosition]]:
    """A snapshot in each of several sessions, for the length of the ``with`` block: all at one position if the server
    grants the lock for it, else each at its own. Other arguments and errors as ``snapshot``.
    """
    with contextlib.ExitStack() as stack:
        for connection in connections:
            stack.callback(_end, connection)
        yield _begin_all(connections, replica=replica)


def _begin_all(connections: Sequence[SourceConnection], *, replica: bool) -> list[SourcePosition]:
    first = connections[0]
    try:
        if len(connections) > 1:
            first.rows(_LOCK)
    except (ConfigError, TransientError):
        return [_begin(connection, replica=replica) for connection in connections]
    if len(connections) == 1:
        return [_begin(first, replica=replica)]
    try:
        for connection in connections:
            connection.rows(_BEGIN)
        own = None if replica else _of_snapshot(first)
        return [own or _stands(first, replica=replica)] * len(connections)
    finally:
        first.rows(_UNLOCK)


def _end(connection: SourceConnection) -> None:
    with contextlib.suppress(LakeError):
        connection.rows("ROLLBACK")


def _begin(connection: SourceConnection, *, replica: bool) -> SourcePosition:
    if not replica:
        connection.rows(_BEGIN)
        if (own := _of_snapshot(connection)) is not None:
            return own
        connection.rows("ROLLBACK")
    try:
        connection.rows(_LOCK)
    except (ConfigError, TransientError):
        return _begin_after(connection, replica=replica)
    try:
        connection.rows(_BEGIN)
        return _stands(connection, replica=replica)
    finally:
        connection.rows(_UNLOCK)


def _of_snapshot(connection: SourceConnection) -> SourcePosition | None:
    """The position of the session's snapshot as MariaDB tells it; None for another server."""
    shown = connection.rows("SHOW STATUS LIKE 'binlog_snapshot_%'")
    status = {str(name).lower(): str(value or "") for name, value in shown}
    if not status.get("binlog_snapshot_file"):
        return None
    file, place = status["binlog_snapshot_file"], int(status["binlog_snapshot_position"])
    return SourcePosition(file, place, _server_id(connection), _gtid(connection, file, place))


def _begin_after(connection: SourceConnection, *, replica: bool) -> SourcePosition:
    """Without a lock: the position of a moment ago."""
    position = _stands(connection, replica=replica)
    time.sleep(_VISIBLE_AFTER_S)
    connection.rows(_BEGIN)
    return replace(position, exact=False)


def _stands(connection: SourceConnection, *, replica: bool) -> SourcePosition:
    """How far the server is now. A transaction that has begun changes nothing about it."""
    if replica:
        status = _first_of(connection, "SHOW REPLICA STATUS", "SHOW SLAVE STATUS")
        file = status.get("relay_source_log_file") or status.get("relay_master_log_file")
        place = status.get("exec_source_log_pos") or status.get("exec_master_log_pos")
        server = status.get("source_server_id") or status.get("master_server_id")
        gtid = status.get("gtid_slave_pos") or status.get("executed_gtid_set")
    else:
        status = _first_of(connection, "SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")
        file, place, gtid = status.get("file"), status.get("position"), status.get("executed_gtid_set")
        server = str(_server_id(connection))
    if not file or not place:
        what = "the server is not a replica" if replica else "the server writes no binlog"
        raise ConfigError(what, do_next="correct source.database", server=connection.place)
    return SourcePosition(file, int(place), int(server or 0), gtid or None)


def _first_of(connection: SourceConnection, *statements: str) -> dict[str, str | None]:
    """The answer to the first statement that the server knows: MySQL has renamed them."""
    for statement in statements[:-1]:
        with contextlib.suppress(ConfigError):
            return connection.named(statement)
    return connection.named(statements[-1])


def _server_id(connection: SourceConnection) -> int:
    [[number]] = connection.rows("SELECT @@server_id")
    return int(number or 0)


def _gtid(connection: SourceConnection, file: str, place: int) -> str | None:
    with contextlib.suppress(LakeError):
        [[gtid]] = connection.rows("SELECT BINLOG_GTID_POS(%s, %s)", (file, place))
        return gtid or None
    return None
