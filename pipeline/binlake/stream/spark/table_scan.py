"""What a job on several tables reads of one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hudilake.format.definition.bucketing import Bucketing, SimpleBuckets
from hudilake.query.join.bucketed import BucketedScan, bucketed, hash_fields
from hudilake.read import Query, Snapshot, TableReader
from hudilake.read.question import Condition
from hudilake.read.source import PlanSource


@dataclass(frozen=True)
class TableScan:
    """Rows and columns of one table.

    Args:
        source: path or URI.
        options: options of the store.
        query: the moment; the latest rows if None.
        condition: the rows, as in ``TableReader.plan``; file slices without such rows are not read.
        columns: the columns; None for all of the table's own.
        buckets: of a table of another writer, whose properties do not say them (Hudi Spark's do not): a number, or
            counts by partition (``PartitionBuckets``). The table then must have Hudi's bucket index; it is checked.
    """

    source: str
    options: Mapping[str, str] | None = None
    query: Query | None = None
    condition: Condition = None
    columns: Sequence[str] | None = None
    buckets: int | Bucketing | None = None

    def plan(self, needed: Sequence[str], with_key: bool = False, service: PlanSource | None = None) -> BucketedScan:
        """The slices to read, by bucket.

        Args:
            needed: columns that are read besides ``columns``; they come first where ``columns`` lacks them.
            with_key: whether the columns of the bucket key are needed, too.
            service: as for ``TableReader.open``.

        Raises UnsupportedError for a table without a bucket index and for conditions with unsupported parts, and as
        ``TableReader.plan``.
        """
        reader = TableReader.open(self.source, self.options, service=service)
        told = SimpleBuckets(self.buckets) if isinstance(self.buckets, int) else self.buckets
        columns = self._own_columns(reader) if self.columns is None else self.columns
        needed = [*needed, *(hash_fields(reader, told) if with_key else ())]
        missing = [name for name in dict.fromkeys(needed) if name not in columns]
        return bucketed(reader, reader.plan(self.query, self.condition, [*missing, *columns]), told)

    def _own_columns(self, reader: TableReader) -> list[str]:
        as_of = self.query.as_of if isinstance(self.query, Snapshot) else None
        schema = reader.table.schema if as_of is None else reader.table.schema_as_of(as_of)
        return list(schema.names)
