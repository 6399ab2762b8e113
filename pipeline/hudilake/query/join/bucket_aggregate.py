"""The rows of a bucketed table grouped bucket by bucket: a plan as a value, and the groups of some buckets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from duckdb import DuckDBPyConnection

from hudilake.errors import ConfigError
from hudilake.query.join.aggregates import Aggregate
from hudilake.query.join.bucketed import BucketedScan
from hudilake.query.join.engine import BUILD_BYTES_A_MB, ArrowStream, JoinLimits, bounded_connection, quoted, run
from hudilake.query.join.keys import HashedKey
from hudilake.query.join.pairs import Pair
from hudilake.query.join.parts import HashedRows
from hudilake.query.join.rows import rows_of


@dataclass(frozen=True)
class BucketAggregate:
    """Groups of the rows of a bucketed table. It can be pickled, and any process can group any of its buckets.

    A group is whole if its columns hold the bucket key; else every bucket gives a part of it.

    Args:
        scan: the table.
        by: the columns of a group.
        aggregates: of each group.
        bounds: of the memory of one bucket.
    """

    scan: BucketedScan
    by: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    bounds: JoinLimits

    def __post_init__(self) -> None:
        names = [name.casefold() for name in self.schema.names]
        if len(set(names)) < len(names):
            raise ConfigError(
                f"two columns of the result have the same name: {', '.join(self.schema.names)}",
                do_next="give the aggregates other names",
            )

    @property
    def is_whole(self) -> bool:
        """Whether all rows of a group are in one bucket."""
        return set(self.scan.fields) <= set(self.by)

    @property
    def schema(self) -> pa.Schema:
        """The columns of a group, then its aggregates."""
        rows = self.scan.schema
        values = [pa.field(one.called, one.result_type(rows)) for one in self.aggregates]
        return pa.schema([pa.field(name, rows.field(name).type) for name in self.by] + values)

    def read(self, groups: Iterable[Pair]) -> Iterator[pa.RecordBatch]:
        """The groups of some buckets, in no promised order. Errors as ``BucketJoin.read``."""
        key = HashedKey(self.scan.fields, self.scan.fields)
        with bounded_connection(self.bounds) as (connection, spilled):
            for group in groups:
                rows = rows_of(self.scan, key, group.left, group)
                yield from self._grouped(connection, HashedRows(self.scan.schema, key, rows, group.of), spilled / "0")

    def _grouped(self, connection: DuckDBPyConnection, rows: HashedRows, place: Path) -> Iterator[pa.RecordBatch]:
        fits = True
        if self.is_whole and rows.can_be_cut:
            rows, fits = rows.within(self.bounds.memory_mb * BUILD_BYTES_A_MB)
        if fits:
            yield from run(connection, self._sql(), {"rows": ArrowStream(rows.schema, rows.batches)}, self.schema)
            return
        for number, part in enumerate(rows.cut(place)):
            yield from self._grouped(connection, part, Path(f"{place}-{number}"))

    def _sql(self) -> str:
        columns = [quoted(name) for name in self.by]
        values = [*columns, *(one.sql(self.scan.schema) for one in self.aggregates)]
        grouped = f" GROUP BY {', '.join(columns)}" if columns else ""
        return f'SELECT {", ".join(values)} FROM "rows"{grouped}'  # noqa: S608 - quoted


def needed_columns(by: Sequence[str], aggregates: Sequence[Aggregate]) -> list[str]:
    """The columns of the table that groups are made of, each once."""
    return list(dict.fromkeys([*by, *(one.column for one in aggregates if one.column is not None)]))
