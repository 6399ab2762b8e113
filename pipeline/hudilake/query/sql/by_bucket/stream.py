"""The rows of a part, step after step: the rows of one step's buckets are joined at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from hudilake.errors import ConfigError, LakeError
from hudilake.query.join.engine import register_rows
from hudilake.query.join.rows import rows_of
from hudilake.query.sql.by_bucket.part import BucketPart, PartTable
from hudilake.query.sql.connection import connected
from hudilake.query.sql.limits import Limits
from hudilake.query.sql.streams import Failures
from hudilake.query.sql.text import said
from hudilake.read.inside.tally import ReadTally
from hudilake.read.plan import BATCH_ROWS


@dataclass
class _StepRows:
    """The rows of one table in the step of the moment; none before the first."""

    part: BucketPart
    table: PartTable
    failures: Failures
    tally: ReadTally | None
    number: int | None = field(default=None, init=False)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self.number is None:
            return
        part, table = self.part, self.table
        try:
            slices = part.slices(table, self.number)
            yield from rows_of(table.scan, table.key, slices, part.pair(self.number), self.tally)
        except LakeError as error:
            self.failures.first = self.failures.first or error
            raise

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:  # noqa: ANN401 - a capsule
        reader = pa.RecordBatchReader.from_batches(self.table.scan.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)


class PartStream:
    """The rows of a part, for each scan by DuckDB anew, by a database of its own.

    Args:
        part: the part.
        limits: of that database.
        failures: gets the error that ends it.
        tally: counts what is read of base files.
        last: whether its rows are the result of the query, not rows that DuckDB reads again.

    Raises duckdb.Error for a part that DuckDB refuses.
    """

    def __init__(
        self, part: BucketPart, limits: Limits, failures: Failures, tally: ReadTally | None, last: bool
    ) -> None:
        self._part = part
        self._tally = tally
        self._last = last
        self._limits = limits
        self._failures = failures
        with connected(limits) as connection:
            self._register(connection)
            #: The columns of the part's rows.
            self.schema: pa.Schema = connection.sql(part.sql).to_arrow_reader(BATCH_ROWS).schema

    def _register(self, connection: duckdb.DuckDBPyConnection) -> list[_StepRows]:
        if not self._last:
            # A sum of whole numbers is wider than any type of Arrow: DuckDB marks it, and knows it again.
            connection.execute("SET arrow_lossless_conversion = true")
        streams = []
        for table in self._part.tables:
            stream = _StepRows(self._part, table, self._failures, self._tally)
            register_rows(connection, table.name, table.scan.schema, stream)
            streams.append(stream)
        return streams

    def batches(self) -> Generator[pa.RecordBatch]:
        """The rows. Errors as ``rows_of``, and ConfigError where DuckDB fails."""
        with connected(self._limits) as connection:
            streams = self._register(connection)
            for number in self._part.numbers:
                for stream in streams:
                    stream.number = number
                try:
                    yield from connection.execute(self._part.sql).to_arrow_reader(BATCH_ROWS)
                except (duckdb.Error, pa.ArrowException) as error:
                    self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self._failures.first is None:
            self._failures.first = ConfigError(
                f"DuckDB: {said(error)}", do_next="correct the query", query=self._part.sql
            )
        raise self._failures.first from error

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:  # noqa: ANN401 - a capsule
        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)
