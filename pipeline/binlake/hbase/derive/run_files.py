"""Local files of runs: a cache of lake files in the form in which cells are found by their row.

A file is written beside its place, synced and renamed, and never changed. It names the lake files from which it was
made. Its arrays are mapped into memory, so a look-up reads the pages of the disk that it needs. What is not whole, or
has another checksum, is taken for no file.

    runs, each an Arrow IPC file of cells and one of their directory, padded to 64 bytes | what it is, as JSON |
    CRC-32 of the JSON (4 bytes, big-endian) | the bytes of the JSON (8 bytes) | MAGIC
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from binlake.hbase.derive.cell_runs import CellRun
from hudilake.clock import new_uuid

MAGIC: Final = b"BLCELLS1"
#: The end of the names of files that are being written.
UNFINISHED: Final = ".unfinished"
_ALIGNED: Final = 64
_READ_BYTES: Final = 1 << 22
#: The bytes after the JSON.
_END: Final = 4 + 8 + len(MAGIC)


@dataclass(frozen=True, slots=True)
class LakeFile:
    """A base file or log file: its path below the table's root, its bytes."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a local file is.

    Args:
        table: the URI of the table.
        base: the base file from which it was made; None for log files alone.
        logs: the log files from which it was made, in merge order.
        parts: the (start, bytes) of each Arrow IPC file, two a run.
        checksum: CRC-32 of all bytes before the JSON.
    """

    table: str
    base: LakeFile | None
    logs: tuple[LakeFile, ...]
    parts: tuple[tuple[int, int], ...] = ()
    checksum: int = 0


_MANIFEST: Final = TypeAdapter(Manifest)


@dataclass(frozen=True)
class RunFile:
    """An open local file. ``nbytes``: its size."""

    path: Path
    manifest: Manifest
    runs: tuple[CellRun, ...]
    nbytes: int


def write_run_file(path: Path, manifest: Manifest, runs: Iterable[CellRun]) -> None:
    """Write a local file, durable on return; one run is in memory at a time.

    ``manifest``: without parts and checksum. Raises OSError.
    """
    beside = path.with_name(f"{path.name}.{new_uuid()}{UNFINISHED}")
    try:
        with beside.open("wb") as out:
            parts, checksum, end = list[tuple[int, int]](), 0, 0
            for run in runs:
                for batch in (run.cells, run.directory):
                    content = _ipc(batch)
                    padding = bytes(-len(content) % _ALIGNED)
                    parts.append((end, len(content)))
                    for piece in (content, padding):
                        out.write(piece)
                        checksum = zlib.crc32(piece, checksum)
                    end += len(content) + len(padding)
            whole = Manifest(manifest.table, manifest.base, manifest.logs, tuple(parts), checksum)
            text = _MANIFEST.dump_json(whole)
            out.write(text + zlib.crc32(text).to_bytes(4, "big") + len(text).to_bytes(8, "big") + MAGIC)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def open_run_file(path: Path) -> RunFile | None:
    """Map a local file into memory, once all of its bytes have been compared with its checksum; None for a file that is
    not whole, or not there."""
    try:
        size = path.stat().st_size
        manifest, end = _manifest(path, size)
        if manifest.checksum != _checksum(path, end):
            return None
        with pa.memory_map(str(path)) as mapped:
            content = mapped.read_buffer(end)
        batches = list(_batches(content, manifest))
        runs = tuple(CellRun(*pair) for pair in zip(batches[::2], batches[1::2], strict=True))
        return RunFile(path, manifest, runs, size)
    except (OSError, ValueError, ValidationError, pa.ArrowException):
        return None


def read_manifest(path: Path) -> Manifest | None:
    """What a local file is, its runs not looked at; None for a file that is not whole, or not there."""
    try:
        return _manifest(path, path.stat().st_size)[0]
    except (OSError, ValueError, ValidationError):
        return None


def _manifest(path: Path, size: int) -> tuple[Manifest, int]:
    """The manifest, and where it begins. Raises ValueError (pydantic's included), OSError."""
    with path.open("rb") as file:
        file.seek(max(size - _END, 0))
        tail = file.read()
        end = size - _END - int.from_bytes(tail[4:12], "big")
        if len(tail) != _END or tail[12:] != MAGIC or end < 0:
            raise ValueError("no end of a file of runs")
        file.seek(end)
        text = file.read(size - _END - end)
        if zlib.crc32(text) != int.from_bytes(tail[:4], "big"):
            raise ValueError("another checksum")
        return _MANIFEST.validate_json(text), end


def _checksum(path: Path, end: int) -> int:
    checksum = 0
    with path.open("rb") as file:
        while end > 0:
            piece = file.read(min(end, _READ_BYTES))
            if not piece:
                raise ValueError("the file is shorter than it was")
            checksum, end = zlib.crc32(piece, checksum), end - len(piece)
    return checksum


def _batches(content: pa.Buffer, manifest: Manifest) -> Iterator[pa.RecordBatch]:
    for start, length in manifest.parts:
        with pa.ipc.open_file(pa.BufferReader(content.slice(start, length))) as opened:
            yield opened.get_batch(0)


def _ipc(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def remove(path: Path) -> None:
    """Remove a local file; what maps it goes on."""
    with contextlib.suppress(OSError):
        path.unlink()
