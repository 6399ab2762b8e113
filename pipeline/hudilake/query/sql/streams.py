"""Rows as Arrow streams, which DuckDB asks for anew at each scan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudilake.errors import LakeError
from hudilake.format.files.view import FileSlice
from hudilake.read.inside.tally import ReadTally
from hudilake.read.plan import ScanPlan, SliceScan


@dataclass
class Failures:
    """The error that ended a stream: DuckDB passes on its text only."""

    first: LakeError | None = None


@dataclass(frozen=True, eq=False)
class SliceStream:
    """The rows of file slices, one slice at a time in memory. ``tally`` counts what is read of base files."""

    scan: SliceScan
    slices: Sequence[FileSlice]
    failures: Failures
    tally: ReadTally | None = None

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for file_slice in self.slices:
                yield from self.scan.read(file_slice, self.tally)
        except LakeError as error:
            self.failures.first = self.failures.first or error
            raise

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:  # noqa: ANN401 - a capsule
        reader = pa.RecordBatchReader.from_batches(self.scan.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, eq=False)
class CountedStream:
    """The rows of a plan that are counted only."""

    plan: ScanPlan

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:  # noqa: ANN401 - a capsule
        scan = self.plan.scan
        batches = (batch for one in self.plan.counted for batch in one.batches(scan.schema, scan.batch_rows))
        return pa.RecordBatchReader.from_batches(scan.schema, batches).__arrow_c_stream__(requested_schema)
