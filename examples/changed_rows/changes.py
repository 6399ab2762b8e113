"""Shows the rows that differ between a moment and now: ``python -m examples.changed_rows.changes --help``.

The table, of the index ``bucket``, is joined with itself as of the moment, bucket by bucket: each task reads one bucket
at both moments, and nothing is shuffled. Files are read, so the cost follows the size of the table; the columns that
are compared can be chosen.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from binlake.stream.spark.bucket_join import TableScan, bucket_join
from hudilake import Snapshot, instant_of, open_table

BEFORE, NOW = "_before", "_now"


def changes(spark: SparkSession, source: str, since: str, columns: Sequence[str]) -> DataFrame:
    """The key, what happened (``inserted``, ``deleted``, ``changed``), and the columns at both moments.

    Args:
        spark: the session.
        source: path or URI of the table.
        since: the moment, an instant of 17 digits.
        columns: that are compared, besides the key.
    """
    table = open_table(source)
    key, order = table.key, table.order_by  # which no row lacks
    values = [name for name in columns if name not in (*key, order)]
    before, now = (TableScan(source, query=query, columns=[*key, *values, order]) for query in (Snapshot(since), None))
    joined = bucket_join(spark, before, now, list(key), "full", (BEFORE, NOW))
    both = [name + suffix for name in values for suffix in (BEFORE, NOW)]
    return joined.withColumn("change", _change(values, order)).where("change is not null").select(*key, "change", *both)


def _change(values: Sequence[str], order: str) -> Column:
    differ = sql.lit(False)
    for name in values:
        differ = differ | ~sql.col(name + BEFORE).eqNullSafe(sql.col(name + NOW))
    return (
        sql.when(sql.col(order + BEFORE).isNull(), "inserted")
        .when(sql.col(order + NOW).isNull(), "deleted")
        .when(differ, "changed")
    )


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("--since", required=True, help="2024-02-29 12:34:56.789, or an instant of 17 digits, in UTC")
    parser.add_argument("--columns", nargs="+", required=True)
    given = parser.parse_args()
    spark = SparkSession.builder.appName("changed rows").getOrCreate()
    changes(spark, given.table, instant_of(given.since), given.columns).show(100, truncate=False)


if __name__ == "__main__":
    main()
