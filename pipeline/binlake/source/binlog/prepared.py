"""XA transactions: their rows are in the binlog where they were prepared, and count where they are committed.

Between the two, whatever has happened to the stream, nothing need be kept: the rows are read from the binlog again. The
server holds the locks of a prepared transaction, also after a restart, so no statement changes its rows or their
form meanwhile (measured on MariaDB 11.4: ALTER, RENAME, TRUNCATE and DROP wait; new defaults and ENUM members do not).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from binlake.source.binlog.charsets import Charset
from binlake.source.binlog.compression import events_of
from binlake.source.binlog.dump import BinlogEvent, EventType
from binlake.source.binlog.places import FIRST_POSITION, offset_of
from binlake.source.binlog.statements import LoggedStatement, Xid, xa_in
from hudilake.errors import BadInputError, UnsupportedError

_log = logging.getLogger(__name__)
BEGINS = frozenset({EventType.MARIADB_GTID, EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED})
#: A flag of MariaDB's GTID events.
_PREPARED_XA = 64


class PreparedTransactions:
    """The XA transactions of a binlog that is read from some offset on.

    Args:
        read: gives the events from a position of a file on, to the end of the binlog.
        files: asks the server for the names of its files, in order.
        charsets: by the id of the collation.
    """

    def __init__(
        self,
        read: Callable[[str, int], Iterator[BinlogEvent]],
        files: Callable[[], list[str]],
        charsets: Mapping[int, Charset],
    ) -> None:
        self._read, self._files, self._charsets = read, files, charsets
        self._places: dict[Xid, tuple[str, int]] = {}
        #: The file and the position of the first event of the transaction in hand.
        self._begun = "", 0
        #: Whether it is to be prepared, so that its rows come at its commit.
        self.preparing = False

    def begin(self, event: BinlogEvent) -> None:
        """A transaction begins. Raises as ``check_ended``."""
        self.check_ended()
        self._begun = event.file, event.start
        self.preparing = event.type is EventType.MARIADB_GTID and bool(event.body[12] & _PREPARED_XA)

    def check_ended(self) -> None:
        """Raise ValueError if the transaction was to be prepared."""
        if self.preparing:
            raise ValueError("an XA transaction that has no XA PREPARE")

    def prepare(self, event: BinlogEvent) -> None:
        """The transaction in hand is prepared, or committed in one phase. Raises as ``_refuse_two``."""
        xid, one_phase = Xid.prepared_in(event)
        if not one_phase:
            _refuse_two(xid, self._places.get(xid), event)
            self._places[xid] = self._begun
        self.preparing = False

    def goes_on(self, statement: LoggedStatement, event: BinlogEvent) -> bool:
        """Whether the transaction in hand goes on after a statement of XA. Raises UnsupportedError for others than
        servers are known to write."""
        if statement.xa is None:
            raise UnsupportedError(
                f"the binlog has a statement of XA that binlake does not know at {event.place}: {statement.text[:80]}",
                do_next="read this server through Debezium and Kafka",
            )
        what, xid = statement.xa
        if what in ("START", "END"):
            self.preparing = True
            return True
        self._places.pop(xid, None)
        return False

    def events_of(self, event: BinlogEvent, start: int) -> Iterator[BinlogEvent]:
        """The events that one stands for: those of a compressed transaction, or those of an XA transaction that is
        committed there, with its place and time. ``start``: what ends before this offset is not wanted.

        Raises BadInputError if the server no longer has them; ConfigError, TransientError.
        """
        for one in events_of(event):
            xid = self._committed(one)
            if xid is not None and offset_of(one.file, one.end) > start:
                self.preparing = False
                place = self._begun if one.type is EventType.XA_PREPARE else self._places.get(xid)
                for each in self._events(xid, *(place or self._place(xid, one))):
                    yield replace(one, type=each.type, body=each.body, packed=True)
            yield one

    def _committed(self, event: BinlogEvent) -> Xid | None:
        """The XA transaction that an event commits."""
        if event.type is EventType.XA_PREPARE:
            xid, one_phase = Xid.prepared_in(event)
            return xid if one_phase else None
        said = xa_in(event, self._charsets)
        return said[1] if said is not None and said[0] == "COMMIT" else None

    def _events(self, xid: Xid, file: str, position: int) -> Iterator[BinlogEvent]:
        """The events of the transaction that begins at a position, without those that name it."""
        for event in self._unpacked(file, position):
            if event.type is EventType.XA_PREPARE and Xid.prepared_in(event)[0] == xid:
                return
            if event.type not in BEGINS and xa_in(event, self._charsets) is None:
                yield event
        raise ValueError(f"the XA transaction {xid} of {file}:{position} has no end")

    def _unpacked(self, file: str, position: int) -> Iterator[BinlogEvent]:
        return (one for event in self._read(file, position) for one in events_of(event))

    def _place(self, xid: Xid, before: BinlogEvent) -> tuple[str, int]:
        """Look for it back through the files: the newest one of its name."""
        _log.info("looking for the XA transaction %s before %s", xid, before.place, extra={"event": "xa_sought"})
        names = self._files()
        for name in reversed(names[: names.index(before.file) + 1]):
            begun, place, is_over = 0, None, False
            for event in self._unpacked(name, FIRST_POSITION):
                if event.file != name or (name == before.file and event.start >= before.start):
                    break
                if event.type in BEGINS:
                    begun = event.start
                elif event.type is EventType.XA_PREPARE and Xid.prepared_in(event)[0] == xid:
                    _refuse_two(xid, place, event)
                    place = begun
                elif xa_in(event, self._charsets) in (("COMMIT", xid), ("ROLLBACK", xid)):
                    place, is_over = None, True
            if place is not None:
                return name, place
            if is_over:
                break
        raise BadInputError(
            f"the XA transaction {xid} is committed at {before.place}, and the binlog does not have its rows any more",
            do_next="load the tables anew under a new stream name; keep binlogs longer than transactions stay prepared "
            "(binlog_expire_logs_seconds)",
        )


def _refuse_two(xid: Xid, place: object, event: BinlogEvent) -> None:
    """Raise UnsupportedError if there is a place already: the server lets each name be prepared once at a time, and XA
    PREPARE has 32 bits of a format that may have 63."""
    if place is not None:
        raise UnsupportedError(
            f"two XA transactions that the binlog does not tell apart are prepared at {event.place}: {xid}",
            do_next="give them other gtrids, or read this server through Debezium and Kafka",
        )
