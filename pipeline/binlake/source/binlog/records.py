"""Events of the binlog as records: one for each row that changes and for each TRUNCATE, in the form of Debezium's
envelopes; and the statements and definitions of tables, in the form of its schema changes.

Rows of one transaction follow each other, and their transaction is over at its XID, COMMIT or ROLLBACK. A server writes
rows that it has rolled back where the transaction made temporary tables. They are all undone, since rows of tables
without transactions are written apart: they are left out. Where some have been given out, a ROLLBACK among the
statements names the tables as not determined. The rows of an XA transaction come where it is committed (``prepared``),
with the place and time of the commit. What a record cannot say is refused: changes that a session wrote as statements,
rows with missing columns.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from json.encoder import encode_basestring

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.statements import parse_ddl
from binlake.source.binlog.compression import inflated, packed_number
from binlake.source.binlog.definitions import DefinitionReader, StatementPlace, definition_record, statement_record
from binlake.source.binlog.dump import BinlogEvent, EventType
from binlake.source.binlog.places import ROW_BITS, offset_of
from binlake.source.binlog.prepared import BEGINS, PreparedTransactions
from binlake.source.binlog.row_images import RowImages
from binlake.source.binlog.statements import LoggedStatement, StatementKind, statement_in
from binlake.source.binlog.table_map import LoggedTable
from binlake.source.database.source_table import OWN_DATABASES
from hudilake.errors import BadInputError, CorruptDataError, UnsupportedError

#: A transaction with more rows than this leaves in several pieces.
_PIECE_RECORDS = 5_000
_QUOTED: Callable[[str], str] = encode_basestring
#: Events of the file itself, which stand between two transactions.
_OF_FILE = frozenset(
    {
        EventType.FORMAT,
        EventType.ROTATE,
        EventType.STOP,
        EventType.CHECKPOINT,
        EventType.GTID_LIST,
        EventType.PREVIOUS_GTIDS,
        EventType.START_ENCRYPTION,
    }
)
_ROWS: Mapping[EventType, tuple[str, int, bool]] = {  # op, version, compressed
    EventType.WRITE_V1: ("c", 1, False),
    EventType.UPDATE_V1: ("u", 1, False),
    EventType.DELETE_V1: ("d", 1, False),
    EventType.WRITE: ("c", 2, False),
    EventType.UPDATE: ("u", 2, False),
    EventType.DELETE: ("d", 2, False),
    EventType.WRITE_COMPRESSED_V1: ("c", 1, True),
    EventType.UPDATE_COMPRESSED_V1: ("u", 1, True),
    EventType.DELETE_COMPRESSED_V1: ("d", 1, True),
    EventType.WRITE_COMPRESSED: ("c", 2, True),
    EventType.UPDATE_COMPRESSED: ("u", 2, True),
    EventType.DELETE_COMPRESSED: ("d", 2, True),
}
_STANDALONE = 1
_REFUSED = {
    EventType.PARTIAL_UPDATE: "an update of a part of a JSON document (binlog_row_value_options)",
    EventType.INCIDENT: "an incident: the server says that events are missing",
    EventType.EXECUTE_LOAD: "a LOAD DATA that was written as a statement",
}


class InsideTransactionError(Exception):
    """The place where reading began lies inside a transaction."""


@dataclass
class RecordPiece:
    """Records that follow each other.

    Args:
        offsets, millis, values: of the records, in parallel.
        schema: records of schema changes, in order.
        file: the name of the binlog file.
        end: the offset of the next event.
        whole: whether it ends between two transactions.
        gtid: of the newest transaction that has ended by then; None if it has none, or began before the reading.
    """

    offsets: list[int] = field(default_factory=list)
    millis: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    schema: list[bytes] = field(default_factory=list)
    file: str = ""
    end: int = 0
    whole: bool = True
    gtid: str | None = None


@dataclass(frozen=True)
class _ImageReader:
    """What reads the rows of a TABLE_MAP event, if they are read; ``names``: its part of each envelope."""

    images: RowImages | None
    names: str


class RecordMaker:
    """Turns events into records.

    Args:
        definitions: of the tables.
        start: records and schema changes before this offset are left out.
        prepared: the XA transactions of the binlog.
    """

    def __init__(self, definitions: DefinitionReader, start: int, prepared: PreparedTransactions) -> None:
        self._prepared = prepared
        self._definitions, self._mariadb, self._start = definitions, definitions.mariadb, start
        self._piece = RecordPiece()
        self._maps: dict[int, BinlogEvent] = {}
        self._readings: dict[bytes, _ImageReader] = {}
        self._known: dict[SourceTable, LoggedTable] = {}
        self._statement: StatementPlace | None = None
        self._defined_after: dict[SourceTable, StatementPlace | None] = {}
        self._gtid: str | None = None
        self._inside = self._standalone = False
        self._began = False
        #: The number of the next row of an event; the events of a compressed transaction number on.
        self._row = 0
        #: Places in the piece: of the transaction and of its savepoints; None if rows after it have been given out.
        self._undo_to: int | None = 0
        self._savepoints: dict[str | None, int | None] = {}

    def pieces(self, events: Iterable[BinlogEvent | None]) -> Iterator[RecordPiece | None]:
        """The records of events; None where the server had nothing to send for a while.

        Raises InsideTransactionError if the first event is not the first of a transaction, and BadInputError,
        UnsupportedError, CorruptDataError where the binlog has what cannot be read.
        """
        for event in events:
            if event is None:
                yield None
                continue
            if not event.end:  # the format of the file, sent again
                continue
            try:
                self._row = 0
                for one in self._prepared.events_of(event, self._start):
                    self._take(one)
                    if (piece := self._ended_piece(one)) is not None:
                        yield piece
            except (struct.error, IndexError, ValueError, KeyError, OSError, zlib.error) as error:
                raise CorruptDataError(
                    f"the {event.type.name} event at {event.place} of the binlog cannot be read: {error}",
                    do_next="read this server through Debezium and Kafka, and report what mysqlbinlog -vv shows there",
                ) from error

    def _ended_piece(self, event: BinlogEvent) -> RecordPiece | None:
        """The piece that ends with an event; None if it goes on."""
        piece = self._piece
        piece.file, piece.whole = event.file, not self._inside
        piece.gtid = None if self._inside else self._gtid
        within = event.packed and not piece.whole
        piece.end = offset_of(event.file, event.start) + self._row if within else offset_of(event.file, event.end)
        if not piece.whole and len(piece.values) < _PIECE_RECORDS:
            return None
        self._piece = RecordPiece()
        self._undo_to, self._savepoints = None, dict.fromkeys(self._savepoints)
        return piece

    def _take(self, event: BinlogEvent) -> None:
        kind = event.type
        if not self._began and kind not in BEGINS and kind not in _OF_FILE:
            raise InsideTransactionError
        self._began = True
        if kind is EventType.XA_PREPARE:
            self._prepared.prepare(event)
            self._inside = False
        elif self._prepared.preparing and (kind in _ROWS or kind is EventType.TABLE_MAP):
            return  # they come at its commit
        elif kind in _ROWS:
            self._rows(event)
        elif kind is EventType.TABLE_MAP:
            self._maps[int.from_bytes(event.body[:6], "little")] = event
        elif kind in BEGINS:
            self._begin(event)
        elif kind is EventType.XID:
            self._prepared.check_ended()
            self._inside = False
        elif kind in (EventType.QUERY, EventType.QUERY_COMPRESSED):
            self._query(event)
        elif kind in _OF_FILE:
            self._maps.clear()
            if kind is EventType.FORMAT:
                self._readings.clear()
        elif kind in _REFUSED:
            raise UnsupportedError(
                f"the binlog has {_REFUSED[kind]} at {event.place}",
                do_next="read this server through Debezium and Kafka",
            )

    def _begin(self, event: BinlogEvent) -> None:
        self._prepared.begin(event)
        body = event.body
        self._inside, self._standalone = True, False
        self._undo_to, self._savepoints = self._here(event), {}
        if event.type is EventType.MARIADB_GTID:
            number, domain, flags = struct.unpack_from("<QIB", body)
            self._gtid = f"{domain}-{event.server_id}-{number}"
            self._standalone = bool(flags & _STANDALONE)
        elif event.type is EventType.GTID:
            digits = body[1:17].hex()
            uuid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
            self._gtid = f"{uuid}:{int.from_bytes(body[17:25], 'little')}"
        else:
            self._gtid = None

    # -- statements --------------------------------------------------------------------------------------------------

    def _query(self, event: BinlogEvent) -> None:
        statement = statement_in(event, self._definitions.charsets)
        kind = statement.kind
        if kind is StatementKind.XA:
            self._inside = self._prepared.goes_on(statement, event)
            return
        if self._prepared.preparing and kind not in (StatementKind.COMMIT, StatementKind.ROLLBACK):
            return
        self._prepared.check_ended()
        if kind is StatementKind.ROWS and self._offset(event) >= self._start:  # what is before is not read
            self._refuse_rows(statement, event)
        if kind in (StatementKind.DDL, StatementKind.EMPTIED) and event.packed:
            raise UnsupportedError(
                f"a compressed transaction at {event.place} of the binlog has the statement {statement.text[:80]}",
                do_next="read this server through Debezium and Kafka",
            )
        if kind is StatementKind.SAVEPOINT:
            self._savepoints[statement.savepoint] = self._here(event)
        elif kind in (StatementKind.ROLLBACK, StatementKind.ROLLBACK_TO):
            self._undo(statement, kind, event)
        elif kind in (StatementKind.DDL, StatementKind.EMPTIED):
            self._note_statement(statement, kind, event)
        if kind in (StatementKind.BEGIN, StatementKind.SAVEPOINT, StatementKind.ROLLBACK_TO):
            return
        ends = kind in (StatementKind.COMMIT, StatementKind.ROLLBACK)
        if ends or self._standalone or not (self._mariadb or statement.goes_on):
            self._inside = False

    def _here(self, event: BinlogEvent) -> int | None:
        """The place in the piece; None before the start, from where on rows may have been given out by another."""
        return len(self._piece.values) if self._offset(event) >= self._start else None

    def _offset(self, event: BinlogEvent) -> int:
        """The offset of an event; within one that stands for several, that of the next row."""
        return offset_of(event.file, event.start) + self._row

    def _undo(self, statement: LoggedStatement, kind: StatementKind, event: BinlogEvent) -> None:
        """Leave out what the transaction has written, or has written since a savepoint."""
        first = self._undo_to if kind is StatementKind.ROLLBACK else self._savepoints.get(statement.savepoint)
        if first is None:
            self._note_statement(replace(statement, text="ROLLBACK"), kind, event)
        else:
            del self._piece.offsets[first:], self._piece.millis[first:], self._piece.values[first:]

    def _refuse_rows(self, statement: LoggedStatement, event: BinlogEvent) -> None:
        effects = parse_ddl(statement.text, statement.database)
        if effects and all(effect.source.database in OWN_DATABASES for effect in effects):
            return
        raise BadInputError(
            f"a session wrote its changes as a statement at {event.place}: {statement.text[:80]}",
            do_next="forbid sessions another binlog_format than ROW, and load the tables that it changed anew",
        )

    def _note_statement(self, statement: LoggedStatement, kind: StatementKind, event: BinlogEvent) -> None:
        offset = self._offset(event)
        place = self._place(event)
        self._statement = place
        if offset < self._start:
            return
        millis = event.seconds * 1000
        for row, source in enumerate(statement.truncated()):
            if source.database not in OWN_DATABASES:
                head, tail = self._ends(event, source, "t")
                self._add(offset + row, millis, f'{{"before":null,"after":null{head}{row}{tail}')
        if kind is not StatementKind.EMPTIED:
            charset = self._definitions.charset_in(statement, offset) if kind is StatementKind.DDL else ""
            self._piece.schema.append(statement_record(statement, place, charset))

    def _place(self, event: BinlogEvent) -> StatementPlace:
        return StatementPlace(event.file, event.start, event.seconds, event.server_id, self._gtid, self._mariadb)

    # -- rows --------------------------------------------------------------------------------------------------------

    def _rows(self, event: BinlogEvent) -> None:
        last = offset_of(event.file, event.end)
        if last <= self._start:
            return
        body = event.body
        mapped = self._maps.get(int.from_bytes(body[:6], "little"))
        if mapped is None:
            raise ValueError("rows of a table that no TABLE_MAP has named")
        reading = self._readings.get(mapped.body) or self._learn(mapped)
        if reading.images is None:
            return
        op, version, compressed = _ROWS[event.type]
        start = 8 if version == 1 else 8 + int.from_bytes(body[8:10], "little")
        self._add_rows(event, reading.images, reading.names, op, start, compressed=compressed)
        if self._piece.offsets and self._piece.offsets[-1] >= last:
            raise UnsupportedError(
                f"the compressed event or XA COMMIT at {event.place} has more rows than it has offsets",
                do_next="turn compression off and let XA transactions be smaller, or read this server through Debezium "
                "and Kafka",
            )

    def _add_rows(
        self, event: BinlogEvent, images: RowImages, names: str, op: str, start: int, *, compressed: bool
    ) -> None:
        body, first = event.body, offset_of(event.file, event.start)
        width, start = packed_number(body, start)
        if width != images.width:
            raise ValueError(f"rows of {width} columns where the table has {images.width}")
        start = _whole_image(body, start, width, event)
        if op == "u":
            start = _whole_image(body, start, width, event)
        if compressed:  # the rows alone are
            body, start = inflated(body[start:]), 0
        size, millis, wanted = len(body), event.seconds * 1000, self._start
        head, tail = self._ends_of(event, names, op)
        read, row = images.read, self._row
        offsets, times, values = self._piece.offsets, self._piece.millis, self._piece.values
        while start < size:
            image, start = read(body, start)
            if op == "u":
                after, start = read(body, start)
                text = f'{{"before":{image},"after":{after}{head}{row}{tail}'
            elif op == "c":
                text = f'{{"before":null,"after":{image}{head}{row}{tail}'
            else:
                text = f'{{"before":{image},"after":null{head}{row}{tail}'
            if first + row >= wanted:
                offsets.append(first + row)
                times.append(millis)
                values.append(text.encode())
            row += 1
        if start != size:
            raise ValueError(f"rows end at byte {start} of {size}")
        if event.packed:  # no offset within it looks like that of an event
            self._row = row + (row % (1 << ROW_BITS) == 0)

    def _learn(self, mapped: BinlogEvent) -> _ImageReader:
        """What reads the rows of a table; a definition that is new is noted."""
        table = self._definitions.read(mapped)
        if table is None:
            reading = _ImageReader(None, "")
        else:
            reading = _ImageReader(RowImages(table), _names(table.source))
            self._note_definition(table, mapped)
        self._readings[mapped.body] = reading
        return reading

    def _note_definition(self, table: LoggedTable, mapped: BinlogEvent) -> None:
        """A definition holds from the newest statement on: no row of the table has come since."""
        if self._known.get(table.source) == table:
            return
        self._known[table.source] = table
        statement = self._statement
        new = statement is not None and self._defined_after.get(table.source) != statement
        self._defined_after[table.source] = statement
        place = statement if new and statement is not None else self._place(mapped)
        self._piece.schema.append(definition_record(table, place))

    def _ends(self, event: BinlogEvent, source: SourceTable, op: str) -> tuple[str, str]:
        return self._ends_of(event, _names(source), op)

    def _ends_of(self, event: BinlogEvent, names: str, op: str) -> tuple[str, str]:
        """What stands in an envelope after the images: before the number of the row, and after it."""
        gtid = f'"{self._gtid}"' if self._gtid else "null"
        head = (
            f',"source":{{{names},"ts_ms":{event.seconds * 1000},"snapshot":"false","server_id":{event.server_id},'
            f'"gtid":{gtid},"file":{_QUOTED(event.file)},"pos":{event.start},"row":'
        )
        return head, f'}},"op":"{op}","ts_ms":{event.seconds * 1000}}}'

    def _add(self, offset: int, millis: int, text: str) -> None:
        self._piece.offsets.append(offset)
        self._piece.millis.append(millis)
        self._piece.values.append(text.encode())


def _names(source: SourceTable) -> str:
    return f'"db":{_QUOTED(source.database)},"table":{_QUOTED(source.table)}'


def _whole_image(body: bytes, start: int, width: int, event: BinlogEvent) -> int:
    """The place after the bitmap of the columns that an image has. Raises BadInputError unless it has all."""
    size = (width + 7) // 8
    present = int.from_bytes(body[start : start + size], "little")
    if present & ((1 << width) - 1) != (1 << width) - 1:
        raise BadInputError(
            f"the rows at {event.place} of the binlog lack columns: binlog_row_image was not FULL",
            do_next="SET GLOBAL binlog_row_image = FULL, and load the table anew; or read this server through Debezium",
        )
    return start + size
