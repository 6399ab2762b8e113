"""Joins two tables that are bucketed by the join key: each task joins a pair of buckets, nothing is shuffled.

::

    from binlake.stream.spark.bucket_join import TableScan, bucket_join
    orders = TableScan("s3://lake/shop/orders", condition="placed_at >= '2024-01-01'")
    payments = TableScan("s3://lake/shop/payments", columns=["order_id", "paid"])
    frame = bucket_join(spark, orders, payments, on=[("id", "order_id")], how="left")
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from binlake.stream.spark.frames import TableScan, frame_of_tasks, metastore_of
from hudilake.errors import ConfigError
from hudilake.query.join.bucket_join import BucketJoin, JoinSide
from hudilake.query.join.columns import join_columns
from hudilake.query.join.engine import Bounds
from hudilake.query.join.how import JoinHow, check_how
from hudilake.query.join.keys import ColumnPair, JoinKeys
from hudilake.query.join.pairs import packed, pairs_of

__all__ = ["Bounds", "TableScan", "bucket_join"]


def bucket_join(
    spark: SparkSession,
    left: TableScan,
    right: TableScan,
    on: Sequence[str | ColumnPair],
    how: JoinHow = "inner",
    suffixes: tuple[str, str] = ("_left", "_right"),
    bounds: Bounds | None = None,
) -> DataFrame:
    """The joined rows of two tables as of now; every action on the DataFrame reads the same file slices.

    The result has the left columns, then the right ones; semi and anti have the left ones only. Nulls are equal to
    nothing. Conditions of a side filter its rows before the join.

    Args:
        spark: the session. Its workers must be able to import binlake and reach the stores.
        left, right: what is read of each table, which must have the index ``bucket``.
        on: columns that are equal: a name that both tables have, which is one column of the result, or (left name,
            right name). Both bucket keys must be among them, in the same order; further columns are conditions.
        how: inner, left, right, full, semi (left rows with a partner) or anti (left rows without one).
        suffixes: for names of other columns that are in both tables.
        bounds: of the memory of a task; rows beyond it are spilled.

    Raises UnsupportedError for tables without a bucket index, other join columns, and columns whose equal values may be
    in different buckets; ConfigError for names that clash; and as ``TableReader.plan``. Tasks raise as
    ``BucketJoin.read``.
    """
    pairs_on = [(item, item) if isinstance(item, str) else (item[0], item[1]) for item in on]
    if not pairs_on:
        raise ConfigError("the join has no columns", do_next="give on the columns of the bucket key")
    kind = check_how(how)
    service = metastore_of(spark)
    one = left.plan([a for a, _ in pairs_on], service=service)
    other = right.plan([b for _, b in pairs_on], service=service)
    keys = JoinKeys.of(one, other, pairs_on)
    columns = join_columns(one.schema, other.schema, pairs_on, kind, suffixes)
    slots = spark.sparkContext.defaultParallelism
    tasks = packed(pairs_of(one, other, keys, kind, slots), slots)
    plan = BucketJoin(JoinSide(one, keys.left), JoinSide(other, keys.right), columns, bounds or Bounds())
    return frame_of_tasks(spark, tasks, plan.read, columns.schema)
