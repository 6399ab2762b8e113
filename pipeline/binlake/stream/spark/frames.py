"""DataFrames whose rows are made in tasks, as Arrow batches, by plain functions over plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from hudilake.errors import UnsupportedError

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
