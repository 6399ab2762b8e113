"""QUERY events: the text of a statement, the database in which it ran, and what it means for the stream."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import Action
from binlake.decode.ddl.row_statements import CHANGES_ROWS
from binlake.decode.ddl.statements import parse_ddl
from binlake.source.binlog.charsets import Charset
from binlake.source.binlog.compression import inflated
from binlake.source.binlog.dump import BinlogEvent, EventType

_HEADER_BYTES: Final = 13
_CHARSET_VARIABLE: Final = 4
_MODE_VARIABLE: Final = 1
#: The status variables that may stand before the session's character set: the least of their bytes, and how many more
#: there are for each unit of the first one, if there are more (names of a catalog, pairs of collations).
_VARIABLE_BYTES: Final = {0: (4, 0), 1: (8, 0), 2: (2, 1), 3: (4, 0), 6: (1, 1), 128: (3, 0), 129: (8, 0), 131: (1, 4)}
_REAL_AS_FLOAT: Final = 1
_NO_BACKSLASH_ESCAPES: Final = 1 << 20
_STRICT: Final = 1 << 21 | 1 << 22  # STRICT_TRANS_TABLES, STRICT_ALL_TABLES
_IGNORES: Final = re.compile(r"\bIGNORE\b", re.IGNORECASE)
#: Comments, names in quotes, strings and words; in strings a backslash is a sign like others, or takes the next one.
_PLAIN_STRINGS: Final = r"""'[^']*'|"[^"]*\""""
_ESCAPING_STRINGS: Final = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_PARTS: Final = r"/\*(?![!M]).*?\*/|--[ \t][^\n]*|\#[^\n]*|`[^`]*`|(?P<string>%s)|(?P<word>[\w$@]+)"
_COMMENTS: Final = re.compile(r"\s*(?:/\*(?![!M]).*?\*/|--[ \t][^\n]*(?:\n|$)|#[^\n]*(?:\n|$))", re.DOTALL)
_FIRST_WORD: Final = re.compile(r"[\s(]*(?:/\*[!M]+\d*\s*)?([A-Za-z]+)")
#: How a server notes that it has started with empty MEMORY tables.
_EMPTIED: Final = re.compile(r"DELETE FROM `((?:[^`]|``)+)`\.`((?:[^`]|``)+)`\s*")
_SAVEPOINT: Final = re.compile(
    r"\s*(?:ROLLBACK(?:\s+WORK)?\s+TO(?:\s+SAVEPOINT)?|SAVEPOINT)\s+(`(?:[^`]|``)+`|\S+)\s*", re.IGNORECASE
)
_XA: Final = re.compile(r"XA (START|END|COMMIT|ROLLBACK) X'([0-9a-f]*)',X'([0-9a-f]*)',(\d+)", re.IGNORECASE)
_PREPARE: Final = struct.Struct("<BIII")


@dataclass(frozen=True, slots=True)
class Xid:
    """The name of an XA transaction: the low 32 bits of its format, as XA_PREPARE events have them, its global part and
    its branch."""

    format: int
    whole: bytes
    branch: bytes

    def __str__(self) -> str:
        """The parts as a statement of XA writes them, bytes in hexadecimal."""
        return f"X'{self.whole.hex()}',X'{self.branch.hex()}',{self.format}"

    @staticmethod
    def prepared_in(event: BinlogEvent) -> tuple[Xid, bool]:
        """The transaction of an XA_PREPARE event, and whether it is committed there, in one phase."""
        one_phase, number, whole, branch = _PREPARE.unpack_from(event.body)
        names = event.body[_PREPARE.size : _PREPARE.size + whole + branch]
        return Xid(number, names[:whole], names[whole:]), bool(one_phase)


class StatementKind(StrEnum):
    """What a statement means for the stream."""

    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    ROLLBACK_TO = "rollback to"
    DDL = "ddl"
    EMPTIED = "emptied"
    ROWS = "rows"
    XA = "xa"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    """A statement: its text, and the database of names without one ("" for none).

    Args:
        strict: whether its session refuses values that do not fit.
        server_charset: of databases that it makes and that name none; "" if it is not known.
    """

    database: str
    text: str
    strict: bool = False
    server_charset: str = ""

    @property
    def kind(self) -> StatementKind:
        """Its meaning, by its first words. DDL that changes neither rows nor columns of a table means nothing."""
        bare = self.text
        while (comment := _COMMENTS.match(bare)) is not None:
            bare = bare[comment.end() :]
        word = _FIRST_WORD.match(bare)
        first = word[1].upper() if word else ""
        if first in ("BEGIN", "COMMIT"):
            return StatementKind(first.lower())
        if first == "ROLLBACK":
            return StatementKind.ROLLBACK if self.savepoint is None else StatementKind.ROLLBACK_TO
        if first == "SAVEPOINT":
            return StatementKind.SAVEPOINT
        if first == "XA":
            return StatementKind.XA
        if _EMPTIED.fullmatch(self.text):
            return StatementKind.EMPTIED
        if first in CHANGES_ROWS:
            return StatementKind.ROWS
        return StatementKind.DDL if parse_ddl(self.text, self.database) else StatementKind.NOTHING

    @property
    def savepoint(self) -> str | None:
        """The name of the savepoint that it sets or goes back to, in lower case."""
        named = _SAVEPOINT.fullmatch(self.text)
        return named and named[1].strip("`").replace("``", "`").lower()

    @property
    def xa(self) -> tuple[str, Xid] | None:
        """What it says of an XA transaction, in upper case, and of which; None for any other statement."""
        said = _XA.fullmatch(self.text)
        if said is None:
            return None
        return said[1].upper(), Xid(int(said[4]) & 0xFFFFFFFF, bytes.fromhex(said[2]), bytes.fromhex(said[3]))

    @property
    def goes_on(self) -> bool:
        """Whether it is one of MySQL that begins a transaction which has its rows, too."""
        return self.text.rstrip().upper().endswith("START TRANSACTION")

    def truncated(self) -> list[SourceTable]:
        """The tables that it empties."""
        if (emptied := _EMPTIED.fullmatch(self.text)) is not None:
            return [SourceTable(*(name.replace("``", "`") for name in emptied.groups()))]
        effects = parse_ddl(self.text, self.database)
        return [effect.source for effect in effects if effect.action is Action.TRUNCATE]


def xa_in(event: BinlogEvent, charsets: Mapping[int, Charset]) -> tuple[str, Xid] | None:
    """What an event says of an XA transaction, if it is a statement (``LoggedStatement.xa``)."""
    is_one = event.type is EventType.QUERY_COMPRESSED or (event.type is EventType.QUERY and b"XA " in event.body)
    return statement_in(event, charsets).xa if is_one else None


def statement_in(event: BinlogEvent, charsets: Mapping[int, Charset]) -> LoggedStatement:
    """The statement of an event; as ``statement_of``. MariaDB compresses the text of some."""
    body = event.body
    if event.type is EventType.QUERY_COMPRESSED:
        head = _HEADER_BYTES + int.from_bytes(body[11:13], "little") + body[8] + 1
        body = body[:head] + inflated(body[head:])
    return statement_of(body, charsets)


def statement_of(body: bytes, charsets: Mapping[int, Charset]) -> LoggedStatement:
    """The statement of a QUERY event, as a session with the default ``sql_mode`` writes it. ``charsets``: by the id of
    the collation.

    Raises ValueError if the text is not of the session's character set.
    """
    database_bytes = body[8]
    variables_bytes = int.from_bytes(body[11:13], "little")
    session = _session_of(body[_HEADER_BYTES : _HEADER_BYTES + variables_bytes])
    names = _HEADER_BYTES + variables_bytes
    charset, of_server = charsets.get(session.collation), charsets.get(session.server_collation)
    text = body[names + database_bytes + 1 :].decode((charset and charset.codec) or "utf-8")
    database = body[names : names + database_bytes].decode()
    strict = bool(session.sql_mode & _STRICT) and _IGNORES.search(text) is None
    return LoggedStatement(
        database, in_default_mode(text, session.sql_mode), strict, of_server.name if of_server is not None else ""
    )


class _LoggedSession(NamedTuple):
    """The collations of the client's statements and of the server, and the bits of ``sql_mode``; 0 where the event does
    not say them."""

    collation: int
    server_collation: int
    sql_mode: int


def _session_of(variables: bytes) -> _LoggedSession:
    place = sql_mode = 0
    while place < len(variables):
        code = variables[place]
        if code == _CHARSET_VARIABLE:
            client, _, server = struct.unpack_from("<HHH", variables, place + 1)
            return _LoggedSession(client, server, sql_mode)
        if code == _MODE_VARIABLE:
            sql_mode = int.from_bytes(variables[place + 1 : place + 9], "little")
        if code not in _VARIABLE_BYTES:
            break
        least, more = _VARIABLE_BYTES[code]
        place += 1 + least + more * variables[place + 1]
    return _LoggedSession(0, 0, sql_mode)


def in_default_mode(text: str, sql_mode: int) -> str:
    """A statement as a session without NO_BACKSLASH_ESCAPES and REAL_AS_FLOAT writes it."""
    if not sql_mode & (_NO_BACKSLASH_ESCAPES | _REAL_AS_FLOAT):
        return text

    def written(match: re.Match[str]) -> str:
        part = match[0]
        if match.lastgroup == "string" and sql_mode & _NO_BACKSLASH_ESCAPES:
            return part.replace("\\", "\\\\")
        return "FLOAT" if match.lastgroup == "word" and sql_mode & _REAL_AS_FLOAT and part.upper() == "REAL" else part

    strings = _PLAIN_STRINGS if sql_mode & _NO_BACKSLASH_ESCAPES else _ESCAPING_STRINGS
    return re.sub(_PARTS % strings, written, text, flags=re.DOTALL)
