"""Sums over a table that follow each commit: ``python -m examples.live_totals.totals --help``."""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from binlake.stream.spark.changes_source import register_changes

_TABLES = """
create table if not exists totals (value text primary key, n integer not null, total numeric not null);
create table if not exists batches (last integer not null);
"""
_ADD = """
insert into totals values (?, ?, ?)
on conflict (value) do update set n = n + excluded.n, total = total + excluded.total
"""


def differences(changes: DataFrame, by: str, amount: str) -> DataFrame:
    """What a batch of changes adds, for each value of ``by``: to the number of rows, and to the sum of ``amount``."""
    sides = [
        changes.where(f"{side} is not null").select(
            sql.col(f"{side}.{by}").cast("string").alias("value"),
            sql.lit(sign).alias("n"),
            (sql.coalesce(sql.col(f"{side}.{amount}"), sql.lit(0)) * sign).alias("total"),
        )
        for side, sign in (("before", -1), ("after", 1))
    ]
    return sides[0].unionAll(sides[1]).groupBy("value").agg(sql.sum("n").alias("n"), sql.sum("total").alias("total"))


def keep(place: str, number: int, added: Iterable[Any]) -> None:
    """Add a batch to the sums, once, however often Spark gives it."""
    with closing(sqlite3.connect(place)) as database, database:
        database.executescript(_TABLES)
        database.execute("begin immediate")
        (last,) = database.execute("select coalesce(max(last), -1) from batches").fetchone()
        if number <= last:
            return
        database.executemany(_ADD, [(row["value"] or "", row["n"], row["total"]) for row in added])
        database.execute("delete from totals where n = 0")
        database.execute("delete from batches")
        database.execute("insert into batches values (?)", [number])


def follow(spark: SparkSession, table: str, by: str, amount: str, place: str) -> None:
    """Take all commits that there are now."""
    register_changes(spark)
    options = {"since": "earliest", "columns": f"{by},{amount}"}
    changes = spark.readStream.format("binlake_changes").options(**options).load(table)

    def take(batch: DataFrame, number: int) -> None:
        keep(place, number, differences(batch, by, amount).collect())

    query = changes.writeStream.foreachBatch(take).option("checkpointLocation", f"{place}.checkpoint")
    query.trigger(availableNow=True).start().awaitTermination()


def main() -> None:
    """Follow a table, and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("--by", required=True, help="a column: its values are summed apart")
    parser.add_argument("--sum", required=True, help="a column of numbers")
    parser.add_argument("--to", required=True, help="the file of SQLite")
    given = parser.parse_args()
    spark = SparkSession.builder.appName("live totals").getOrCreate()
    follow(spark, given.table, given.by, given.sum, given.to)
    with closing(sqlite3.connect(given.to)) as database:
        for value, n, total in database.execute("select * from totals order by value"):
            print(value, n, total)


if __name__ == "__main__":
    main()
