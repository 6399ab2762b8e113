"""QUERY events: the text of a statement, the database in which it ran, and what it means for the stream."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import Action
from binlake.decode.ddl.row_statements import CHANGES_ROWS
from binlake.decode.ddl.statements import parse_ddl
from binlake.source.binlog.charsets import Charset

_HEADER_BYTES: Final = 13
_CHARSET_VARIABLE: Final = 4
#: The bytes of the status variables that may stand before the session's character set; -1: bytes after a length.
_VARIABLE_BYTES: Final = {0: 4, 1: 8, 3: 4, 6: -1, 2: -2, 128: 3, 129: 8}
_COMMENTS: Final = re.compile(r"\s*(?:/\*(?![!M]).*?\*/|--[ \t][^\n]*(?:\n|$)|#[^\n]*(?:\n|$))", re.DOTALL)
_FIRST_WORD: Final = re.compile(r"[\s(]*(?:/\*[!M]+\d*\s*)?([A-Za-z]+)")
#: How a server notes that it has started with empty MEMORY tables.
_EMPTIED: Final = re.compile(r"DELETE FROM `((?:[^`]|``)+)`\.`((?:[^`]|``)+)`\s*")
_SAVEPOINT: Final = re.compile(
    r"\s*(?:ROLLBACK(?:\s+WORK)?\s+TO(?:\s+SAVEPOINT)?|SAVEPOINT)\s+(`(?:[^`]|``)+`|\S+)\s*", re.IGNORECASE
)


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
    """A statement: its text, and the database of names without one ("" for none)."""

    database: str
    text: str

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
    def goes_on(self) -> bool:
        """Whether it is one of MySQL that begins a transaction which has its rows, too."""
        return self.text.rstrip().upper().endswith("START TRANSACTION")

    def truncated(self) -> list[SourceTable]:
        """The tables that it empties."""
        if (emptied := _EMPTIED.fullmatch(self.text)) is not None:
            return [SourceTable(*(name.replace("``", "`") for name in emptied.groups()))]
        effects = parse_ddl(self.text, self.database)
        return [effect.source for effect in effects if effect.action is Action.TRUNCATE]


def statement_of(body: bytes, charsets: Mapping[int, Charset]) -> LoggedStatement:
    """The statement of a QUERY event. ``charsets``: by the id of the collation.

    Raises ValueError if the text is not of the session's character set.
    """
    database_bytes = body[8]
    variables_bytes = int.from_bytes(body[11:13], "little")
    variables = body[_HEADER_BYTES : _HEADER_BYTES + variables_bytes]
    names = _HEADER_BYTES + variables_bytes
    charset = charsets.get(_client_collation(variables))
    text = body[names + database_bytes + 1 :]
    database = body[names : names + database_bytes].decode()
    return LoggedStatement(database, text.decode((charset and charset.codec) or "utf-8"))


def _client_collation(variables: bytes) -> int:
    """The collation of the client's statements; 0 where the event does not say it."""
    place = 0
    while place < len(variables):
        code = variables[place]
        if code == _CHARSET_VARIABLE:
            return int.from_bytes(variables[place + 1 : place + 3], "little")
        size = _VARIABLE_BYTES.get(code)
        if size is None:
            return 0
        place += 1 + (size if size >= 0 else variables[place + 1] - 1 - size)
    return 0
