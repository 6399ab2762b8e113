"""Groups the rows of a table bucket by bucket.

::

    from binlake.stream.spark.bucket_aggregate import Aggregate, TableScan, bucket_aggregate
    lines = TableScan("s3://lake/shop/lines")
    frame = bucket_aggregate(spark, lines, ["order_id"], [Aggregate("count"), Aggregate("sum", "amount")])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from binlake.stream.spark.frames import TableScan, frame_of_tasks, metastore_of
from hudilake.errors import ConfigError
from hudilake.query.join.aggregates import Aggregate
from hudilake.query.join.bucket_aggregate import BucketAggregate, needed_columns
from hudilake.query.join.engine import Bounds
from hudilake.query.join.pairs import groups_of, packed

__all__ = ["Aggregate", "Bounds", "TableScan", "bucket_aggregate"]


def bucket_aggregate(
    spark: SparkSession,
    table: TableScan,
    by: Sequence[str],
    aggregates: Sequence[Aggregate],
    bounds: Bounds | None = None,
) -> DataFrame:
    """A row for each group of a table as of now: the columns of ``by``, then the aggregates.

    If ``by`` holds the bucket key, all rows of a group are in one bucket, and nothing is shuffled. Else each task gives
    its part of the groups, and Spark shuffles and merges these parts: their number is that of the groups, times the
    tasks at most.

    Args:
        spark: the session. Its workers must be able to import binlake and reach the store.
        table: what is read; it must have the index ``bucket``. Its ``columns`` play no part.
        by: columns; none for one group of all rows.
        aggregates: at least one.
        bounds: of the memory of a task; rows beyond it are spilled.

    Raises UnsupportedError for tables without a bucket index, columns that a function does not take, and
    ``count_distinct`` without the bucket key in ``by``; ConfigError for names that clash; and as ``TableReader.plan``.
    """
    if not aggregates:
        raise ConfigError("there is no aggregate", do_next="give at least one, Aggregate('count') for example")
    columns = needed_columns(by, aggregates)
    scan = replace(table, columns=columns).plan([], with_key=True, service=metastore_of(spark))
    whole = BucketAggregate(scan, tuple(by), tuple(aggregates), bounds or Bounds())
    slots = spark.sparkContext.defaultParallelism
    tasks = packed(groups_of(scan, slots), slots)
    if whole.is_whole:
        return frame_of_tasks(spark, tasks, whole.read, whole.schema)
    parts = [part for one in aggregates for part in one.parts()]
    partial = replace(whole, aggregates=tuple(part.aggregate for part in parts))
    frame = frame_of_tasks(spark, tasks, partial.read, partial.schema)
    return frame.groupBy(*map(_column, by)).agg(*map(_merged, aggregates))


def _column(name: str) -> Column:
    return sql.col("`" + name.replace("`", "``") + "`")


def _merged(one: Aggregate) -> Column:
    values = []
    for part in one.parts():
        column = _column(part.aggregate.called)
        merged = {"sum": sql.sum, "min": sql.min, "max": sql.max}[part.merge](column)
        is_count = part.aggregate.function == "count"
        values.append(sql.coalesce(merged, sql.lit(0)) if is_count else merged)
    if one.function == "mean":
        total, count = values
        return (total.cast("double") / sql.when(count > 0, count)).alias(one.called)
    return values[0].alias(one.called)
