"""Reads a table as a Spark DataFrame without a Hudi jar: the driver plans, one task reads each remaining file slice.

::

    from binlake.stream.spark.dataframe import read_dataframe
    frame = read_dataframe(spark, "s3://lake/shop/orders", condition="placed_at >= '2024-01-01'")
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from binlake.stream.spark.frames import frame_of_tasks, metastore_of
from binlake.stream.spark.tasks import map_in_tasks
from hudilake.format.files.view import FileSlice
from hudilake.read import IndexReads, Query, ScanPlan, TableReader
from hudilake.read.counting import CountedRows, CountRequest
from hudilake.read.lookups import IndexExecutor, IndexTask
from hudilake.read.plan import SliceScan
from hudilake.read.pruning import INDEX_ROWS_IN_PROCESS
from hudilake.read.question import Condition

#: The property of a Spark session with the number of index rows above which the index is read in tasks.
ROWS_IN_PROCESS_KEY = "spark.binlake.indexRowsInProcess"


def read_dataframe(
    spark: SparkSession,
    source: str,
    options: Mapping[str, str] | None = None,
    query: Query | None = None,
    condition: Condition = None,
    columns: Sequence[str] | None = None,
    index_rows_in_process: int | None = None,
) -> DataFrame:
    """The rows of a table as of now; every action on the DataFrame reads the same file slices.

    Args:
        spark: the session. Its workers must be able to import binlake and reach the store.
        source: path or URI.
        options: options of the store.
        query, condition, columns: as in ``TableReader.plan``. Only ``condition`` skips file slices, so put filters
            there; ``DataFrame.where`` filters afterwards. Where ``columns`` are columns of the partitioning alone, the
            rows of whole files are counted in the metadata table and not read.
        index_rows_in_process: index rows (files times columns) up to which the driver reads the index itself; above
            that it is read in tasks. None takes the session's ``spark.binlake.indexRowsInProcess``, else 100,000.

    A metastore that the session names (``spark.binlake.metastoreUri``) is asked first; storage, if it does not answer.

    Raises UnsupportedError for a condition with unsupported parts, and as ``TableReader.plan``.
    """
    if index_rows_in_process is None:
        index_rows_in_process = int(spark.conf.get(ROWS_IN_PROCESS_KEY, None) or INDEX_ROWS_IN_PROCESS)
    reads = IndexReads(index_rows_in_process, in_tasks(spark))
    counting = CountRequest(tuple(columns)) if columns is not None else None
    reader = TableReader.open(source, options, reads=reads, service=metastore_of(spark))
    plan = reader.plan(query, condition, columns, counting=counting)
    plan.require_exact()
    return to_dataframe(spark, plan)


def to_dataframe(spark: SparkSession, plan: ScanPlan) -> DataFrame:
    """The rows of a plan, one task for each of its file slices. Rows that are only counted are made in tasks too.

    Raises UnsupportedError for column types that Spark does not have.
    """
    return frame_of_tasks(spark, (*plan.slices, *plan.counted), partial(_rows, plan.scan), plan.scan.schema)


def _rows(scan: SliceScan, task: FileSlice | CountedRows) -> Iterator[pa.RecordBatch]:
    return scan.read(task) if isinstance(task, FileSlice) else task.batches(scan.schema, scan.batch_rows)


def in_tasks(spark: SparkSession) -> IndexExecutor:
    """Runs the parts of an index read as Spark tasks. A failure raises a LakeError; the plan then skips no file by
    that index."""

    def run(tasks: Sequence[IndexTask]) -> Iterable[bytes]:
        return map_in_tasks(spark.sparkContext, lambda task: task(), tasks, max(len(tasks), 1))

    return run
