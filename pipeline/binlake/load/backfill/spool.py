"""Rows that cannot be read twice, or not in parts, written to Parquet files beside the stream's state.

CSV (``csv_rows``) and Arrow files, queries and frames are read once, before the first portion. The portions are read
from these files, so a backfill that was interrupted goes on with the same rows, whatever has become of its input.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from binlake.load.backfill.inputs import Input, InputForm
from binlake.load.backfill.pieces import Piece
from hudilake.errors import BadInputError, ConfigError
from hudilake.storage import Storage
from hudilake.storage.ranged import StoredFile

#: Rows of a spooled file; fewer if a portion takes fewer.
MOST_ROWS = 250_000


@dataclass(frozen=True, slots=True)
class SpoolFile:
    """A file that was written: its piece, its bytes and a digest of its content."""

    piece: Piece
    size: int
    digest: str


def spool(storage: Storage, prefix: str, batches: Iterable[pa.RecordBatch], most_rows: int) -> Iterator[SpoolFile]:
    """Write rows to Parquet files, one row group each.

    Args:
        storage: of the state.
        prefix: the beginning of the files' paths.
        batches: the rows, all with one schema.
        most_rows: of one file.

    Raises StorageError.
    """
    for number, rows in enumerate(_sized(batches, min(most_rows, MOST_ROWS))):
        sink = io.BytesIO()
        pq.write_table(rows, sink, compression="zstd", row_group_size=max(1, rows.num_rows))
        data, path = sink.getvalue(), f"{prefix}{number:06}.parquet"
        storage.write(path, data)
        yield SpoolFile(Piece(path, 0, rows.num_rows), len(data), hashlib.blake2b(data, digest_size=8).hexdigest())


def _sized(batches: Iterable[pa.RecordBatch], most_rows: int) -> Iterator[pa.Table]:
    """Tables of ``most_rows`` rows, the last one of fewer."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        while count + batch.num_rows >= most_rows:
            part = batch.slice(0, most_rows - count)
            yield pa.Table.from_batches([*held, part])
            held, count, batch = [], 0, batch.slice(part.num_rows)
        if batch.num_rows:
            held.append(batch)
            count += batch.num_rows
    if held:
        yield pa.Table.from_batches(held)


@contextmanager
def batches_of(given: Input) -> Iterator[pa.RecordBatchReader]:
    """The rows of a query or of Arrow files; read them while the context is open.

    Raises ConfigError for a query that DuckDB refuses, BadInputError for files that cannot be read.
    """
    if given.kind is InputForm.QUERY:
        with _queried(given.text) as reader:
            yield reader
        return
    storage = given.place.storage()
    first, *rest = [StoredFile(storage, file.path, file.size) for file in given.files]
    try:
        yield _arrow(first, rest)
    except (pa.ArrowException, OSError) as error:
        raise BadInputError(
            f"the input cannot be read: {error}",
            do_next="correct the files, then run the command again",
            path=given.text,
        ) from error


@contextmanager
def _queried(text: str) -> Iterator[pa.RecordBatchReader]:
    """The rows of a query. It is the operator's own and may read what the operator may read; extensions are not
    fetched."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "python_enable_replacements": False})
    try:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection.sql(text).to_arrow_reader(MOST_ROWS)
    except (duckdb.Error, pa.ArrowException) as error:
        raise ConfigError(f"DuckDB: {error}", do_next="correct the query (--from)", query=text) from error
    finally:
        connection.close()


def _arrow(first: StoredFile, rest: Sequence[StoredFile]) -> pa.RecordBatchReader:
    opened = _ipc(first)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from _each(opened)
        for file in rest:
            yield from (batch.select(opened.schema.names).cast(opened.schema) for batch in _each(_ipc(file)))

    return pa.RecordBatchReader.from_batches(opened.schema, batches())


def _ipc(file: StoredFile) -> pa.RecordBatchFileReader | pa.RecordBatchReader:
    try:
        return pa.ipc.open_file(pa.PythonFile(file, mode="r"))
    except pa.ArrowInvalid:  # the streaming form
        file.seek(0)
        return pa.ipc.open_stream(pa.PythonFile(file, mode="r"))


def _each(reader: pa.RecordBatchFileReader | pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.RecordBatchFileReader):
        yield from (reader.get_batch(n) for n in range(reader.num_record_batches))
    else:
        yield from reader
