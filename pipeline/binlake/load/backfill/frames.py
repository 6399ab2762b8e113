"""Backfills from Python: rows that are in memory, or in a DataFrame of Spark.

::

    from binlake.load.backfill.frames import backfill
    report = backfill(Settings.load("conf.yaml"), "shop.orders", frame, columns=["score"])
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from binlake.load.backfill.inputs import Input, InputForm
from binlake.load.backfill.pieces import Place
from binlake.load.backfill.request import BackfillRequest
from binlake.load.backfill.run import Backfill, BackfillReport, OpenWorkers
from binlake.load.backfill.spool import spool
from binlake.position.lease import StreamLease
from binlake.position.recorded import backfill_stream
from binlake.settings import Settings
from binlake.stream.monitoring.progress import ProgressEvent
from hudilake.storage import FileInfo, Storage, open_storage

_SPOOLED = "path string, size long, digest string"


@dataclass(frozen=True, slots=True)
class _File:
    """A spooled file of a frame, and the digest of its content."""

    path: str
    size: int
    digest: str


def backfill(
    settings: Settings,
    table: str,
    frame: pa.Table | pa.RecordBatchReader | DataFrame,
    columns: Sequence[str],
    *,
    key: Sequence[str] | None = None,
    where: str | None = None,
    order: int = 0,
    group: str | None = None,
    insert: bool = False,
    portion_rows: int = 1_000_000,
    restart: bool = False,
    workers: OpenWorkers | None = None,
    on_progress: Callable[[ProgressEvent], None] = lambda event: None,
) -> BackfillReport:
    """Write columns of a frame to the rows of a table, each portion once.

    The rows are spooled beside the stream's state first. The content of the frame is the backfill's identity: after a
    death, a call with the same rows in the same order goes on behind the portions that the table has.

    Args:
        settings: of the stream that writes the table; it may be running.
        table: its name, ``database.table`` or its path in the lake.
        frame: the rows, with the key's columns; a DataFrame is spooled by its own tasks, which must reach the state.
        columns, key, where, order, group, insert, portion_rows, restart: as in ``BackfillRequest``.
        workers: creates the workers of a large input; None to write in this process.
        on_progress: called after every portion.

    Raises as ``Backfill.run``.
    """
    names = None if key is None else tuple(key)
    request = BackfillRequest(tuple(columns), names, where, order, group, insert, portion_rows, restart)
    place = hashlib.blake2b(table.encode(), digest_size=8).hexdigest()
    root = open_storage(settings.state_uri, settings.state_options())
    lease, rows = root.sub(f"frames/{place}"), root.sub(f"frames/{place}/rows")
    with StreamLease(lease, f"{backfill_stream(settings.name)} of a frame into {table}"):
        rows.delete_tree("")
        try:
            files = _spooled(frame, Place(rows.uri, settings.state_options()), rows, portion_rows)
            if not files:
                return BackfillReport(table, request.columns)
            job = Backfill(settings, table, request, workers, on_progress=on_progress)
            return job.run(_input(files, Place(rows.uri, settings.state_options())))
        finally:
            rows.delete_tree("")


def _input(files: Sequence[_File], place: Place) -> Input:
    content = hashlib.blake2b("".join(file.digest for file in files).encode(), digest_size=8).hexdigest()
    infos = tuple(FileInfo(file.path, file.size, 0) for file in files)
    return Input(f"frame {content}", InputForm.PARQUET, place, infos)


def _spooled(
    frame: pa.Table | pa.RecordBatchReader | DataFrame, place: Place, storage: Storage, portion_rows: int
) -> list[_File]:
    if not isinstance(frame, DataFrame):
        batches = frame.to_batches() if isinstance(frame, pa.Table) else frame
        return list(_files(storage, "rows-", batches, portion_rows))

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        written = _files(place.storage(), f"rows-{task.partitionId():06}-", batches, portion_rows)
        for file in written:
            yield pa.RecordBatch.from_pylist([{"path": file.path, "size": file.size, "digest": file.digest}])

    spooled = frame.mapInArrow(write, _SPOOLED).collect()
    return sorted((_File(row.path, row.size, row.digest) for row in spooled), key=lambda file: file.path)


def _files(storage: Storage, prefix: str, batches: Iterable[pa.RecordBatch], portion_rows: int) -> Iterator[_File]:
    for spooled in spool(storage, prefix, batches, portion_rows):
        yield _File(spooled.piece.path, spooled.size, spooled.digest)
