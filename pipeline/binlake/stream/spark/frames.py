"""What reads of tables as DataFrames share: rows made in tasks, the reads of one table, the metastore of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from hudilake.errors import UnsupportedError
from hudilake.format.definition.bucketing import Bucketing, SimpleBuckets
from hudilake.query.join.bucketed import BucketedScan, bucketed, hash_fields
from hudilake.read import Query, Snapshot, TableReader
from hudilake.read.question import Condition
from hudilake.read.source import PlanSource
from lakemetastore.client.plans import ServicePlans
from lakemetastore.client.requests import MetastoreClient

T = TypeVar("T")


def frame_of_tasks(
    spark: SparkSession, tasks: Sequence[T], read: Callable[[T], Iterator[pa.RecordBatch]], schema: pa.Schema
) -> DataFrame:
    """A DataFrame with a partition for each task; no row is shuffled.

    Args:
        spark: the session. Its workers must be able to import binlake and reach the store.
        tasks: values that can be pickled.
        read: gives the rows of a task; it can be pickled.
        schema: of every batch.

    Raises UnsupportedError for column types that Spark does not have.
    """
    try:
        types = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    except TypeError as error:
        raise UnsupportedError(f"Spark has no such column type: {error}", do_next="leave the column out") from error
    if not tasks:
        return spark.createDataFrame([], types)
    sent = spark.sparkContext.broadcast((tuple(tasks), read))

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given, function = sent.value
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from function(given[number])

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(rows, types)


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
        bucketing = SimpleBuckets(self.buckets) if isinstance(self.buckets, int) else self.buckets
        columns = self._own_columns(reader) if self.columns is None else self.columns
        needed = [*needed, *(hash_fields(reader, bucketing) if with_key else ())]
        missing = [name for name in dict.fromkeys(needed) if name not in columns]
        return bucketed(reader, reader.plan(self.query, self.condition, [*missing, *columns]), bucketing)

    def _own_columns(self, reader: TableReader) -> list[str]:
        as_of = self.query.as_of if isinstance(self.query, Snapshot) else None
        schema = reader.table.schema if as_of is None else reader.table.schema_as_of(as_of)
        return list(schema.names)


#: The property of a session with the addresses of a metastore's HTTP API, with commas between them: it is asked for
#: file slices, and storage if it does not answer.
METASTORE_KEY: Final = "spark.binlake.metastoreUri"


def metastore_of(spark: SparkSession) -> ServicePlans | None:
    """The metastore that a session's properties name, if they do. Raises ConfigError for addresses that are none."""
    uris = spark.conf.get(METASTORE_KEY, None)
    return None if not uris else ServicePlans(MetastoreClient(uris))
