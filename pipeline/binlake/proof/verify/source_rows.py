"""The rows of a source table: as a stream, or those of some keys."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from binlake.proof.verify.columns import ColumnPlan, ComparedColumn
from binlake.proof.verify.rows import EVERYTHING, KeyRange, KnownRows
from binlake.source.database.connection import SourceConnection
from binlake.source.database.pace import Pace
from binlake.source.database.source_table import DescribedTable, quoted
from binlake.source.database.values import Unreadable, sql_literal

#: The most rows and bytes in memory at once.
CHUNK_ROWS, CHUNK_BYTES = 65_536, 64 << 20
#: Keys of one lookup.
_KEYS_AT_ONCE = 500


@dataclass
class SourceRows:
    """Reads one source table within the session's snapshot.

    Args:
        connection: a snapshot may be open in it.
        table: the table.
        plan: the compared columns.
        pace: the limit of rows a second.
        portion: the rows to read.
        fetched: how many rows were fetched by their keys so far.
        unreadable: column -> values that no lake type holds, so far.
    """

    connection: SourceConnection
    table: DescribedTable
    plan: ColumnPlan
    pace: Pace
    portion: KeyRange = EVERYTHING
    fetched: int = 0
    unreadable: Mapping[str, Unreadable] = field(init=False)

    def __post_init__(self) -> None:
        self.unreadable = {c.source.name: Unreadable() for c in self.plan.columns}

    def all(self) -> Iterator[KnownRows]:
        """All rows, in chunks."""
        return self._read(self.plan.columns, self._where(self.portion))

    def keys(self) -> Iterator[KnownRows]:
        """All rows, with the columns of the key only. Their digests are those of the key."""
        return self._read(self.plan.key, self._where(self.portion))

    def of_keys(self, keys: pa.Table) -> KnownRows:
        """The rows of these keys that exist, whole; and others whose keys the server's collation holds for equal.

        ``keys``: the key columns of n rows, in canonical types.
        """
        parts: list[KnownRows] = []
        for start in range(0, keys.num_rows, _KEYS_AT_ONCE):
            some = keys.slice(start, _KEYS_AT_ONCE)
            parts += self._read(self.plan.columns, f" WHERE {self._is_one_of(some)}")
        self.fetched += sum(map(len, parts))
        rows = KnownRows.joined(parts, self.plan)
        once = np.zeros(len(rows), dtype=np.bool_)
        once[np.unique(rows.keys, return_index=True)[1]] = True
        return rows.where(once)

    def _read(self, columns: Sequence[ComparedColumn], where: str) -> Iterator[KnownRows]:
        selected = ", ".join(c.source.selected for c in columns)
        sql = f"SELECT {selected} FROM {self.table.sql_name}{where}"  # noqa: S608 - identifiers are quoted
        with contextlib.closing(self.connection.blocks(sql, CHUNK_ROWS, CHUNK_BYTES)) as blocks:
            for block in blocks:
                cells = block.columns(len(columns))
                values = [c.of_source(a, self.unreadable[c.source.name]) for c, a in zip(columns, cells, strict=True)]
                yield KnownRows.of(pa.table(values, names=[c.source.name for c in columns]), self.plan)
                self.pace.passed(len(block))

    def _where(self, portion: KeyRange) -> str:
        name = quoted(self.plan.key[0].source.name)
        parts = [
            f"{name} {sign} {bound}" for sign, bound in ((">=", portion.low), ("<", portion.high)) if bound is not None
        ]
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def _is_one_of(self, keys: pa.Table) -> str:
        columns = self.plan.key
        names = ", ".join(quoted(c.source.name) for c in columns)
        rows = zip(*(keys.column(c.source.name).to_pylist() for c in columns), strict=True)
        texts = [", ".join(self._literal(v, c) for v, c in zip(row, columns, strict=True)) for row in rows]
        return f"({names}) IN ({', '.join(f'({text})' for text in texts)})"

    def _literal(self, value: object, column: ComparedColumn) -> str:
        return sql_literal(value, column.reader.kind, self.connection.literal)
