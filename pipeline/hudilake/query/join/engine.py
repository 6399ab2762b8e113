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
            register_rows(connection, name, stream.schema, stream)
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


def register_rows(connection: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema, stream: object) -> None:
    """Give a connection a stream of rows under a name; a name may be given again. Raises duckdb.Error."""
    stored = f"{name}_stored"
    connection.register(stored, stream)
    columns = own_columns(schema)
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS SELECT {columns} FROM {quoted(stored)}")  # noqa: S608 - quoted


def own_columns(schema: pa.Schema) -> str:
    """All columns of Arrow rows in SQL, so that DuckDB compares floats itself.

    It leaves comparisons with a bare Arrow column to pyarrow, also those with a field of one and those that it makes of
    the rows of a join's other side. There NaN is neither greater than a number nor equal to itself, as it is in SQL
    (measured, DuckDB 1.5.6). So columns with floats are wrapped in an expression that changes nothing.
    """
    wrapped = [f"{_itself(field)} AS {quoted(field.name)}" for field in schema if _has_floats(field.type)]
    return f"* REPLACE ({', '.join(wrapped)})" if wrapped else "*"


def _itself(field: pa.Field) -> str:
    column = quoted(field.name)
    if pa.types.is_struct(field.type):
        return f"CASE WHEN {column} IS NULL THEN NULL ELSE {column} END"
    return f"CASE WHEN isnan({column}) THEN 'nan' ELSE {column} END"


def _has_floats(kind: pa.DataType) -> bool:
    inside = pa.types.is_struct(kind) and any(_has_floats(field.type) for field in kind)
    return inside or bool(pa.types.is_floating(kind))


def quoted(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'
