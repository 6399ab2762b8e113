"""DuckDB over Arrow streams with bounded memory: what does not fit is spilled to a directory of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from hudilake.errors import LakeError, TransientError
from hudilake.read.plan import BATCH_ROWS

#: For a MB of memory: of the rows that a hash table is made of. They are held as Arrow batches and in DuckDB.
BUILD_BYTES_A_MB: Final = 1 << 18
#: A connection runs what it is given, with no extensions and no variables of Python.
ALONE: Final[Mapping[str, bool]] = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


@dataclass(frozen=True)
class JoinLimits:
    """What one task may take.

    Args:
        memory_mb: of hash tables and sorts; rows beyond it are spilled. Arrow batches on their way come on top, and the
            one file slice that is being read.
        spill_path: a directory on the machine of the task; None for the system's own for temporary files.
    """

    memory_mb: int = 512
    spill_path: str | None = None


@dataclass
class ArrowStream:
    """Batches for one scan by DuckDB.

    Args:
        schema: of every batch.
        batches: the rows, for one pass.

    ``failure``: the error that reading them raised; DuckDB gives only its text.
    """

    schema: pa.Schema
    batches: Iterable[pa.RecordBatch]
    failure: LakeError | None = field(default=None, init=False)

    def _guarded(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.batches
        except LakeError as error:
            self.failure = error
            raise

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:  # noqa: ANN401 - a capsule
        return pa.RecordBatchReader.from_batches(self.schema, self._guarded()).__arrow_c_stream__(requested_schema)


@contextmanager
def bounded_connection(bounds: JoinLimits) -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """A connection in memory: one thread, times in UTC, no extensions, no files but those that it spills; and a
    directory for other files. All are deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="binlake-spill-", dir=bounds.spill_path) as spilled:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "threads": 1,
            "memory_limit": f"{bounds.memory_mb}MiB",
            "temp_directory": str(Path(spilled) / "duckdb"),
            "preserve_insertion_order": False,
            **ALONE,
        }
        connection = duckdb.connect(config=settings)
        try:
            connection.execute("SET enable_external_access = false")  # earlier it would forbid the directory, too
            connection.execute("SET TimeZone = 'UTC'")
            yield connection, Path(spilled)
        finally:
            connection.close()


def run(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    streams: dict[str, ArrowStream],
    schema: pa.Schema,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """The rows of a query.

    Args:
        connection: bounded.
        sql: one SELECT over the streams, each scanned once.
        streams: by their names in the query.
        schema: of the result: names and types by position, in which DuckDB's values have a place.
        batch_rows: the largest number of rows of one batch.

    Raises the error of a stream, TransientError if DuckDB fails: memory and disk do not suffice.
    """
    try:
        for name, stream in streams.items():
            connection.register(name, stream)
        for batch in connection.sql(sql).to_arrow_reader(batch_rows):
            columns = [array.cast(kind) for array, kind in zip(batch.columns, schema.types, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
    except (duckdb.Error, pa.ArrowException) as error:
        failures = [stream.failure for stream in streams.values() if stream.failure is not None]
        if failures:
            raise failures[0] from error
        raise TransientError(
            f"DuckDB: {error}", do_next="give the tasks more memory_mb, or more room for files that are spilled"
        ) from error


def quoted(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'
