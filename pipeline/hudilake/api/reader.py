"""What a scan gives: rows in whatever form the caller works with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudilake.format.files.view import FileSlice
from hudilake.read.plan import ScanPlan, SliceScan

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class ScanTask:
    """The rows of one file slice of a scan: a part that any process can read. It can be pickled.

    Args:
        scan: how it is read.
        file_slice: what is read.

    Example:
        >>> tasks = orders.scan(["id"]).tasks()
        >>> sum(task.to_arrow().num_rows for task in tasks)
        3
        >>> {task.partition for task in tasks}
        {'day=d1'}
    """

    scan: SliceScan
    file_slice: FileSlice

    @property
    def partition(self) -> str:
        """The partition path; "" in a table without partitions."""
        return self.file_slice.partition_path

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return self.file_slice.base_size + self.file_slice.log_size

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows, read as they are asked for. Raises TransientError if the table was cleaned since the scan,
        CorruptDataError, StorageError."""
        return pa.RecordBatchReader.from_batches(self.scan.schema, self.scan.read(self.file_slice))

    def to_arrow(self) -> pa.Table:
        """The rows in memory. Raises as ``to_batches``."""
        return self.to_batches().read_all()


@dataclass(frozen=True, slots=True)
class Reader:
    """The rows of a scan, of the table's state when it was planned. It can be read several times, and pickled.

    ``Table.scan`` makes it. It has the Arrow PyCapsule interface: polars, pandas, DuckDB and others take it directly.
    No more than one file slice is in memory while batches are read.

    Args:
        plan: the file slices, and why others are left out.

    Example:
        >>> reader = orders.scan(["id", "qty"], "qty >= 4")
        >>> reader.schema.names
        ['id', 'qty']
        >>> sorted(reader.to_arrow().column("id").to_pylist())
        [1, 3]
        >>> sum(batch.num_rows for batch in reader)
        2
        >>> len(reader.to_pandas())
        2
    """

    plan: ScanPlan

    @property
    def schema(self) -> pa.Schema:
        """The columns of every batch."""
        return self.plan.scan.schema

    def tasks(self) -> list[ScanTask]:
        """The scan in parts, one for each file slice: for the workers of Ray, Spark or a process pool."""
        return [ScanTask(self.plan.scan, piece) for piece in self.plan.slices]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for task in self.tasks():
            yield from task.to_batches()

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows as a stream of record batches, read as they are asked for.

        Raises TransientError if the table was cleaned since the scan, CorruptDataError, StorageError.
        """
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def to_arrow(self) -> pa.Table:
        """All rows in memory. Raises as ``to_batches``."""
        return self.to_batches().read_all()

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas has no types here
        """All rows as a frame of pandas, which must be installed. Raises as ``to_batches``."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:  # noqa: ANN401 - polars is not a dependency
        """All rows as a ``polars.DataFrame``. Raises ImportError without polars, otherwise as ``to_batches``."""
        import polars  # type: ignore[import-not-found,unused-ignore]

        return polars.from_arrow(self.to_arrow())

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The rows as a relation of DuckDB, which must be installed; read anew by each query of it.

        ``connection``: whose relation it is; None for DuckDB's default connection.
        """
        import duckdb

        from hudilake.query.join.engine import own_columns

        rows = self.to_arrow()
        relation = (connection or duckdb.default_connection()).from_arrow(rows)
        columns = own_columns(rows.schema)
        return relation if columns == "*" else relation.project(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow PyCapsule interface."""
        return self.to_batches().__arrow_c_stream__(requested_schema)
