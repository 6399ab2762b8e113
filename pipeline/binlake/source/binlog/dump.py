"""The events of a binlog, as a server sends them to a replica (COM_BINLOG_DUMP), with the place of each.

The places are summed up from the events' sizes: MariaDB 11.4 and later leave the positions inside a transaction out
(``binlog_legacy_event_pos``). So nothing may be left out on the way: the checksums and MariaDB's annotations are asked
for, although nobody reads the annotations, and wherever an event does state its end, it must be the sum.

The protocol and the event types are those of MySQL's and MariaDB's manuals ("Replication Protocol"). PyMySQL carries
the packets. mysql-replication would read the events, too; docs/without-kafka.md says why it does not.
"""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from binlake.source.binlog.places import FIRST_POSITION
from hudilake.errors import BadInputError, ConfigError, CorruptDataError, LakeError

if TYPE_CHECKING:
    from binlake.source.database.connection import SourceConnection

#: Of each event: seconds, type, server, size, end, flags.
HEADER = struct.Struct("<IBIIIH")
_DUMP = struct.Struct("<IHI")
_CHECKSUM_BYTES = 4
_CRC32 = 1
_ARTIFICIAL = 0x20
_IGNORABLE = 0x80
_NON_BLOCKING, _ANNOTATIONS = 0x01, 0x02
#: A server that has nothing to send says so this often: the reader then knows that the connection lives.
HEARTBEAT_S = 1.0


class EventType(IntEnum):
    """The types of events that a server sends. Any other type is refused."""

    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    RAND = 13
    USER_VAR = 14
    FORMAT = 15
    XID = 16
    BEGIN_LOAD = 17
    EXECUTE_LOAD = 18
    TABLE_MAP = 19
    WRITE_V1 = 23
    UPDATE_V1 = 24
    DELETE_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE = 30
    UPDATE = 31
    DELETE = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    ANNOTATE_ROWS = 160
    CHECKPOINT = 161
    MARIADB_GTID = 162
    GTID_LIST = 163
    START_ENCRYPTION = 164
    QUERY_COMPRESSED = 165
    WRITE_COMPRESSED_V1 = 166
    UPDATE_COMPRESSED_V1 = 167
    DELETE_COMPRESSED_V1 = 168
    WRITE_COMPRESSED = 169
    UPDATE_COMPRESSED = 170
    DELETE_COMPRESSED = 171


_TYPES = {int(one): one for one in EventType}


@dataclass(frozen=True, slots=True)
class BinlogEvent:
    """One event.

    Args:
        type: of the event.
        seconds: its time since the Unix epoch.
        server_id: of the server on which it happened first.
        file: the name of the binlog file.
        start, end: the position of the event in the file, and of the next one.
        body: all after the header, without the checksum.
        packed: whether it is one of a compressed transaction, and ``start`` and ``end`` are those of the whole.
    """

    type: EventType
    seconds: int
    server_id: int
    file: str
    start: int
    end: int
    body: bytes
    packed: bool = False

    @property
    def place(self) -> str:
        """For people."""
        return f"{self.file}:{self.start}"


def binlog_events(
    connection: SourceConnection, file: str, position: int, *, server_id: int, ends: bool
) -> Iterator[BinlogEvent | None]:
    """The events from a position on; None whenever the server had nothing to send for a while.

    Args:
        connection: which this takes for itself; closing it ends the iteration with an error.
        file, position: the place of the first event.
        server_id: of this replica; 0 for a reader that may exist beside any other.
        ends: whether to end where the binlog ends now; otherwise the iteration waits for more.

    Raises BadInputError (the server no longer has the place), ConfigError (rights), TransientError,
    CorruptDataError (a checksum or a position is wrong), UnsupportedError.
    """
    connection.rows("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'")
    connection.rows("SET @mariadb_slave_capability = 4")
    nanoseconds = int(HEARTBEAT_S * 1e9)
    connection.rows(f"SET @master_heartbeat_period = {nanoseconds}, @source_heartbeat_period = {nanoseconds}")
    flags = _ANNOTATIONS | (_NON_BLOCKING if ends else 0)
    connection.begin_dump(_DUMP.pack(position, flags, server_id) + file.encode())
    with _dump_errors(file, position):
        yield from _EventPlaces(file, position).events(connection)


@contextlib.contextmanager
def _dump_errors(file: str, position: int) -> Iterator[None]:
    try:
        yield
    except LakeError as error:
        if error.where.get("error") != 1236:
            raise
        where = f"{file}:{position}"
        if "same server" in error.what:
            raise ConfigError(
                f"another replica with this server id reads the binlog: {error.what}",
                do_next="give source.mysql.server_id a number that no other replica has",
            ) from None
        raise BadInputError(
            f"the server does not send its binlog from {where} on: {error.what}", do_next=_LOST
        ) from None


_LOST = (
    "if the file was deleted: give the stream a new name and a new lake path, and load the tables; keep binlogs longer "
    "(binlog_expire_logs_seconds)"
)


class _EventPlaces:
    """Follows the place in the binlog. ``file``, ``position``: of the next event."""

    def __init__(self, file: str, position: int) -> None:
        self._file, self._position = file, position
        self._checksums = False

    def events(self, connection: SourceConnection) -> Iterator[BinlogEvent | None]:
        """The events that are in the file. Raises as ``binlog_events``."""
        for packet in connection.dump_packets():
            seconds, number, server_id, size, end, flags = HEADER.unpack_from(packet)
            if number in (EventType.HEARTBEAT, EventType.HEARTBEAT_V2):
                yield None
                continue
            if size != len(packet):
                raise self._corrupt(f"an event of {len(packet)} bytes says that it has {size}")
            if number == EventType.FORMAT:
                self._checksums = packet[-_CHECKSUM_BYTES - 1] == _CRC32
            body = self._body(packet, number)
            made = (
                flags & _ARTIFICIAL
                or (number == EventType.ROTATE and seconds == 0)
                or (end == 0 and self._is_sent_again(number))
            )
            if number == EventType.ROTATE and made:
                self._turn(body)
                continue
            if made:
                if number == EventType.FORMAT:
                    yield BinlogEvent(EventType.FORMAT, seconds, server_id, self._file, FIRST_POSITION, 0, body)
                continue
            yield self._placed(number, seconds, server_id, size, end, flags, body)
            if number == EventType.ROTATE:
                self._turn(body)

    def _is_sent_again(self, number: int) -> bool:
        """The server sends the file's first event to a reader that begins further on."""
        return (
            number in (EventType.FORMAT, EventType.START_ENCRYPTION, EventType.GTID_LIST)
            and self._position > FIRST_POSITION
        )

    def _placed(
        self, number: int, seconds: int, server_id: int, size: int, end: int, flags: int, body: bytes
    ) -> BinlogEvent:
        start, self._position = self._position, self._position + size
        if end and end != self._position & 0xFFFFFFFF:
            raise self._corrupt(f"the event at {start} ends at {self._position} by its size, and at {end} as it says")
        kind = _TYPES.get(number)
        if kind is None:
            if not flags & _IGNORABLE:
                raise BadInputError(
                    f"the binlog has an event of type {number} at {self._file}:{start}, which binlake does not know",
                    do_next="read this server through Debezium and Kafka",
                )
            kind = EventType.IGNORABLE
        return BinlogEvent(kind, seconds, server_id, self._file, start, self._position, body)

    def _body(self, packet: bytes, number: int) -> bytes:
        if number == EventType.FORMAT:
            return packet[HEADER.size : -_CHECKSUM_BYTES]
        is_right = zlib.crc32(packet[:-_CHECKSUM_BYTES]) == int.from_bytes(packet[-_CHECKSUM_BYTES:], "little")
        if self._checksums and not is_right:
            raise self._corrupt("the checksum of an event is wrong")
        # a ROTATE that the server makes up comes before the event that says whether there are checksums
        return packet[
            HEADER.size : -_CHECKSUM_BYTES if self._checksums or (number == EventType.ROTATE and is_right) else None
        ]

    def _turn(self, body: bytes) -> None:
        """Go on in the file that a ROTATE names."""
        self._file, self._position = body[8:].decode(), int.from_bytes(body[:8], "little")

    def _corrupt(self, what: str) -> CorruptDataError:
        return CorruptDataError(
            f"the binlog cannot be read at {self._file}:{self._position}: {what}",
            do_next="start again; if it comes again, check the file with mysqlbinlog --verify-binlog-checksum",
        )
