"""A table in chunks: ranges of its key, each of about so many rows, as the server orders them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass
from typing import TypeVar

from binlake.decode.types.mysql_types import INTEGER_BASES
from binlake.source.database.connection import SourceConnection
from binlake.source.database.source_table import DescribedTable, quoted

R = TypeVar("R")
_BINARY = frozenset({"binary", "varbinary"})
_NUMBERS = (INTEGER_BASES - {"bool", "year"}) | {"decimal"}
#: Types whose values compare with a literal in the order in which they are sorted. An ENUM does not.
_ORDERED = _NUMBERS | _BINARY | {"char", "varchar", "date", "datetime", "timestamp"}


#: Values of the first columns of a key, as the server spells them.
Place = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """The rows from ``low`` on and before ``high``; None for no bound."""

    low: Place | None = None
    high: Place | None = None


@dataclass(frozen=True, slots=True)
class ChunkColumns:
    """The columns by which a table is cut: those at the beginning of its key that can be compared.

    Args:
        table: quoted.
        names: of the columns, quoted.
        bases: of their types.
    """

    table: str
    names: tuple[str, ...]
    bases: tuple[str, ...]

    @staticmethod
    def of(table: DescribedTable) -> ChunkColumns | None:
        """None for a table without a key, or whose key begins with a type that cannot be compared in its order."""
        columns = list[tuple[str, str]]()
        for column in map(table.column, table.key):
            if column.type is None or column.type.base not in _ORDERED:
                break
            columns.append((quoted(column.name), column.type.base))
        if not columns:
            return None
        names, bases = zip(*columns, strict=True)
        return ChunkColumns(table.sql_name, names, bases)

    def where(self, chunk: Chunk, connection: SourceConnection) -> str:
        """The condition of a chunk, with WHERE; empty for the whole table."""
        bounds = ((">", ">=", chunk.low), ("<", "<", chunk.high))
        parts = [self._beyond(sign, last, place, connection) for sign, last, place in bounds if place is not None]
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def chunk(self, connection: SourceConnection, rows: int, low: Place | None) -> Chunk:
        """The chunk that begins at a place, None for the first one. It has ``rows`` rows, and those besides that are
        at the same place as its first. Raises TransientError.

        ``connection``: answers anything: whatever it says, chunks that follow each other have all rows.
        """
        after = f" WHERE {self._beyond('>', '>', low, connection)}" if low is not None else ""
        pairs = zip(self.names, self.bases, strict=True)
        values = ", ".join(f"HEX({name})" if base in _BINARY else name for name, base in pairs)
        order = ", ".join(self.names)
        sql = f"SELECT {values} FROM {self.table}{after} ORDER BY {order} LIMIT {rows}, 1"  # noqa: S608 - quoted
        bound = connection.rows(sql)
        return Chunk(low, tuple(map(str, bound[0])) if bound else None)

    def _beyond(self, sign: str, last: str, place: Place, connection: SourceConnection) -> str:
        """The condition that a row is beyond a place: by one of its columns while those before are equal.

        The server's range optimizer reads it as ranges of the key, and does not so read a comparison of two rows.

        ``sign``: of the comparison; ``last``: that of the last column of the place.
        """
        condition = ""
        for name, base, value in reversed(list(zip(self.names, self.bases, place, strict=False))):
            literal = _literal(base, value, connection)
            if condition:
                condition = f"({name} {sign} {literal} OR ({name} = {literal} AND {condition}))"
            else:
                condition = f"{name} {last} {literal}"
        return condition


def _literal(base: str, value: str, connection: SourceConnection) -> str:
    if base in _NUMBERS:
        return value
    return f"x'{value}'" if base in _BINARY else connection.literal(value)


def read_in_order(
    columns: ChunkColumns,
    connections: Sequence[SourceConnection],
    rows: int,
    after: Place | None,
    read: Callable[[int, str], R],
    readers: Executor,
) -> Iterator[tuple[Chunk, R]]:
    """The chunks of a table in their order, each with what was read of it: as many side by side as there are sessions.

    Args:
        columns: of the table.
        connections: of the sessions.
        rows: of a chunk.
        after: the place from which on chunks are read; None: all.
        read: reads in the session of a number the rows for which a condition holds.
        readers: runs it.

    Raises what ``read`` raises, TransientError. Whenever it ends, no session reads any more.
    """
    free, running = deque(range(len(connections))), deque[tuple[int, Chunk, Future[R]]]()
    low, more = after, True
    try:
        while running or more:
            while more and free:
                number = free.popleft()
                chunk = columns.chunk(connections[number], rows, low)
                where = columns.where(chunk, connections[number])
                running.append((number, chunk, readers.submit(read, number, where)))
                low, more = chunk.high, chunk.high is not None
            number, chunk, reading = running.popleft()
            result = reading.result()
            free.append(number)
            yield chunk, result
    finally:
        wait([reading for _, _, reading in running if not reading.cancel()])
