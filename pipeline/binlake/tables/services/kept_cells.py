"""Which cells of a table of cells a compaction keeps (``binlake.hbase.rules.horizon``), row of the store by row of the
store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import ROW, WRITTEN
from binlake.hbase.rules.horizon import needed
from binlake.hbase.settings.rules import CellsRule
from hudilake.clock import parse_instant
from hudilake.format.definition.schema import COMMIT_TIME_FIELD

_WRITTEN_TYPE = pa.timestamp("us", tz="UTC")
_US_PER_MS = 1000


@dataclass(frozen=True)
class KeptCells:
    """The rule of a table of cells as a ``RowRetention``.

    A cell that does not say when it was written counts as written when it came. In the order of the record keys, the
    cells of a row follow each other, because the text of a row has no comma (``binlake.decode.cells``). A stretch of
    rows and the cells of one row are in memory.
    """

    rule: CellsRule

    def horizon_ms(self, log_rows: pa.Table, instant: str) -> int:
        """The newest change in the log files less the lateness. So a stream that was down for longer than the lateness
        drops nothing before it has caught up. Without a change, or a family that is declared, it is the start of
        time."""
        newest = pc.max(log_rows.column(WRITTEN))
        newest = newest if newest.is_valid else pc.max(_came(log_rows))
        if not newest.is_valid or not self.rule.families:
            return 0
        reached: int = newest.cast(pa.int64()).as_py() // _US_PER_MS
        return max(0, min(reached, parse_instant(instant)) - self.rule.lateness_ms)

    def kept(self, rows: Iterable[pa.Table], horizon_ms: int) -> Iterator[pa.Table]:
        """The cells that a read after the horizon may need. Raises CorruptDataError for a kind of cell that is not
        known."""
        for whole in _whole_rows(rows):
            index = whole.schema.get_field_index(WRITTEN)
            dated = pc.coalesce(whole.column(index), _came(whole))
            yield whole.filter(needed(whole.set_column(index, WRITTEN, dated), self.rule, horizon_ms))


def _whole_rows(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same cells, cut between rows of the store."""
    begun: list[pa.Table] = []
    for table in tables:
        if not table.num_rows:
            continue
        last = table.column(ROW)[-1]
        cut = pc.index(table.column(ROW), last).as_py()
        if cut or (begun and begun[-1].column(ROW)[-1] != last):
            yield pa.concat_tables([*begun, table.slice(0, cut)])
            begun = []
        begun.append(table.slice(cut))
    if begun:
        yield pa.concat_tables(begun)


def _came(rows: pa.Table) -> pa.ChunkedArray:
    """When each row was committed to the lake."""
    words = rows.column(COMMIT_TIME_FIELD).combine_chunks().dictionary_encode()
    times = pa.array([parse_instant(time) * _US_PER_MS for time in words.dictionary.to_pylist()], _WRITTEN_TYPE)
    return pa.chunked_array([times.take(words.indices)], _WRITTEN_TYPE)
