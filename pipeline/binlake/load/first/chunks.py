"""A table in chunks: ranges of the first column of its key, each of about so many rows, as the server orders them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass
from typing import TypeVar

from binlake.decode.types.mysql_types import INTEGER_BASES
from binlake.source.database.connection import SourceConnection
from binlake.source.database.source_table import DescribedTable, SourceColumn, quoted

R = TypeVar("R")
_BINARY = frozenset({"binary", "varbinary"})
_NUMBERS = (INTEGER_BASES - {"bool", "year"}) | {"decimal"}
#: Types whose values compare with a literal in the order in which they are sorted. An ENUM does not.
_ORDERED = _NUMBERS | _BINARY | {"char", "varchar", "date", "datetime", "timestamp"}


@dataclass(frozen=True, slots=True)
class Chunk:
    """The rows whose first key column is at least ``low`` and less than ``high``, values as the server spells them;
    None for no bound."""

    low: str | None = None
    high: str | None = None


@dataclass(frozen=True, slots=True)
class ChunkColumn:
    """The column by which a table is cut.

    Args:
        table: quoted.
        name: of the column, quoted.
        base: of its type.
    """

    table: str
    name: str
    base: str

    @staticmethod
    def of(table: DescribedTable, column: SourceColumn) -> ChunkColumn | None:
        """None for a column whose type cannot be compared in its order."""
        if column.type is None or column.type.base not in _ORDERED:
            return None
        return ChunkColumn(table.sql_name, quoted(column.name), column.type.base)

    def where(self, chunk: Chunk, connection: SourceConnection) -> str:
        """The condition of a chunk, with WHERE; empty for the whole table."""
        bounds = ((">=", chunk.low), ("<", chunk.high))
        parts = [
            f"{self.name} {sign} {self._literal(value, connection)}" for sign, value in bounds if value is not None
        ]
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def chunk(self, connection: SourceConnection, rows: int, low: str | None) -> Chunk:
        """The chunk that begins at a value, None for the first one. It has ``rows`` rows, and those besides that have
        the same value as its first. Raises TransientError.

        ``connection``: answers anything: whatever it says, chunks that follow each other have all rows.
        """
        after = f" WHERE {self.name} > {self._literal(low, connection)}" if low is not None else ""
        value = f"HEX({self.name})" if self.base in _BINARY else self.name
        sql = f"SELECT {value} FROM {self.table}{after} ORDER BY {self.name} LIMIT {rows}, 1"  # noqa: S608 - quoted
        bound = connection.rows(sql)
        return Chunk(low, str(bound[0][0]) if bound else None)

    def _literal(self, value: str, connection: SourceConnection) -> str:
        if self.base in _NUMBERS:
            return value
        return f"x'{value}'" if self.base in _BINARY else connection.literal(value)


def read_in_order(
    column: ChunkColumn,
    connections: Sequence[SourceConnection],
    rows: int,
    after: str | None,
    read: Callable[[int, str], R],
    readers: Executor,
) -> Iterator[tuple[Chunk, R]]:
    """The chunks of a table in their order, each with what was read of it: as many side by side as there are sessions.

    Args:
        column: of the table.
        connections: of the sessions.
        rows: of a chunk.
        after: the value from which on chunks are read; None: all.
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
                chunk = column.chunk(connections[number], rows, low)
                where = column.where(chunk, connections[number])
                running.append((number, chunk, readers.submit(read, number, where)))
                low, more = chunk.high, chunk.high is not None
            number, chunk, reading = running.popleft()
            result = reading.result()
            free.append(number)
            yield chunk, result
    finally:
        wait([reading for _, _, reading in running if not reading.cancel()])
