"""A plan to read a table: the remaining file slices, the outcome and reason of each step, and the scan of a slice: only
the needed columns, only the rows that pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import TransientError, UnsupportedError
from hudilake.format.files.view import FileSlice
from hudilake.read.counting import CountedRows
from hudilake.read.filters.evaluate import matches
from hudilake.read.filters.expressions import TRUE, Filter, unknown_parts
from hudilake.read.inside.tally import ReadTally
from hudilake.read.laid_out import CommitLayout
from hudilake.read.query import Query
from hudilake.read.slice import SliceReader
from hudilake.read.window import CommitWindow
from hudilake.storage.base import StorageNotFoundError

#: The largest number of rows of one batch.
BATCH_ROWS: Final = 65_536
#: The step name of warnings about parts of the condition that the caller must evaluate.
CONDITION: Final = "condition"


@dataclass(frozen=True)
class ScanWarning:
    """A step that failed, so that more is read than needed."""

    step: str
    what: str

    def __str__(self) -> str:
        return f"{self.step}: {self.what}"


@dataclass(frozen=True)
class PlanStep:
    """The outcome of one step. ``partitions``, ``slices`` and ``files`` are None if they are not known at that
    point."""

    name: str
    why: str
    partitions: int | None = None
    slices: int | None = None
    files: int | None = None


@dataclass(frozen=True)
class SliceScan:
    """The scan of each slice of a plan. It can be pickled.

    Args:
        reader: returns at least the columns of the condition and the window, in the types of the table.
        columns: the columns to return.
        condition: normalised; rows pass its unsupported parts.
        expression: a pyarrow expression that is evaluated unchanged, or None.
        window: of an incremental read, or None.
        batch_rows: the largest number of rows of one batch.
    """

    reader: SliceReader
    columns: tuple[str, ...]
    condition: Filter = TRUE
    expression: pc.Expression | None = None
    window: CommitWindow | None = None
    batch_rows: int = BATCH_ROWS

    @property
    def schema(self) -> pa.Schema:
        """The schema of every batch."""
        return pa.schema([self.reader.schema.field(name) for name in self.columns])

    def read(self, file_slice: FileSlice, tally: ReadTally | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of one slice that pass. The slice is in memory as long as the iterator; of its base file the row
        groups and pages that may hold such rows. ``tally`` counts them.

        Raises CorruptDataError, UnsupportedError, StorageError; TransientError if a file was deleted: the table was
        cleaned after the plan was made.
        """
        try:
            rows = self.reader.read(file_slice, self.condition, tally)
        except StorageNotFoundError as error:
            raise TransientError(
                "a file of the plan does not exist: the table was cleaned during the read",
                do_next="plan and read again; raise the cleaner's retention if readers take long",
                path=str(error),
            ) from error
        yield from self._passing(rows).select(self.columns).to_batches(max_chunksize=self.batch_rows)

    def _passing(self, rows: pa.Table) -> pa.Table:
        passing = np.ones(rows.num_rows, dtype=np.bool_) if self.condition == TRUE else matches(self.condition, rows)
        if self.window is not None:
            passing &= self.window.matches(rows)
        if not passing.all():
            rows = rows.filter(pa.array(passing))
        return rows if self.expression is None else rows.filter(self.expression)


@dataclass(frozen=True)
class ScanPlan:
    """The slices to read, and the steps that selected them. It can be pickled, and any process can read its slices.

    ``counted``: rows that pass and are not read; their slices are not among ``slices``. ``laid_out``: the commits that
    put rows of the table into an order, if the plan counts all slices.

    ``condition`` is normalised. Rows that pass its supported parts are returned; ``exact``: whether all parts are
    supported.
    """

    table: str
    query: Query
    condition: Filter
    columns: tuple[str, ...]
    slices: tuple[FileSlice, ...]
    steps: tuple[PlanStep, ...]
    warnings: tuple[ScanWarning, ...]
    scan: SliceScan
    counted: tuple[CountedRows, ...] = ()
    laid_out: tuple[CommitLayout, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the returned rows are exactly those that pass; else the caller must still evaluate its condition."""
        return not unknown_parts(self.condition) or self.scan.expression is not None

    def require_exact(self) -> None:
        """Raise UnsupportedError if more rows may be returned than those that pass."""
        if not self.exact:
            parts = ", ".join(unknown_parts(self.condition))
            raise UnsupportedError(
                f"parts of the condition are not supported, or name no column: {parts}",
                do_next="correct the names of columns, or remove these parts and filter the rows in your own code",
            )

    @property
    def files(self) -> int:
        """Files that will be read."""
        return sum((s.base_file is not None) + len(s.log_files) for s in self.slices)

    @property
    def size(self) -> int:
        """Bytes of those files."""
        return sum(s.base_size + s.log_size for s in self.slices)
