"""Scans of HBase-like stores as files of every form, and what a table of cells holds."""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.decode.cells import CELL_KEY, CELL_SCHEMA
from pipeline.decode.changes import SourceTable
from pipeline.decode.types.cell_text import bytes_of
from pipeline.hudi.read.slice import read_file_slice
from pipeline.hudi.table.table import HudiTable
from pipeline.replay.engine import LocalEngine
from pipeline.replay.replay_dumps import ReplayReport, Workers, replay_dumps
from pipeline.settings import Settings
from pipeline.source.dump_layout import Window
from pipeline.source.scan_read import Scan
from pipeline.storage import open_storage
from tests.hbase.recordings import CellPlace, RawCell

#: A line of a scan: the row, and its cells as (family, qualifier, timestamp, [kind,] value).
Row = tuple[bytes, list[tuple[Any, ...]]]

_TYPES = {"Put": 4, "Delete": 8, "DeleteFamilyVersion": 10, "DeleteColumn": 12, "DeleteFamily": 14}


def rows_of(cells: Iterable[RawCell], *, raw: bool) -> list[Row]:
    """Cells as a scan names them: row by row, and within one family, column, newest first; markers before puts."""
    rank = {kind: -code for kind, code in _TYPES.items()}

    def order(cell: RawCell) -> tuple[bytes, bytes, bytes, int, int]:
        row, family, qualifier, at = cell.place
        return row, family, qualifier, -at, rank[cell.kind]

    def shown(cell: RawCell) -> tuple[Any, ...]:
        _, family, qualifier, at = cell.place
        return (family, qualifier, at, cell.kind, cell.value) if raw else (family, qualifier, at, cell.value)

    kept = sorted((cell for cell in cells if raw or cell.kind == "Put"), key=order)
    return [(row, [shown(c) for c in mine]) for row, mine in groupby(kept, lambda cell: cell.place.row)]


def as_json(rows: Sequence[Row]) -> bytes:
    def shown(part: object) -> object:
        return base64.b64encode(part).decode() if isinstance(part, bytes) else part

    lines = [{"row": shown(row), "cells": [list(map(shown, cell)) for cell in cells]} for row, cells in rows]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def as_parquet(rows: Sequence[Row], *, text: bool = False) -> bytes:
    cells = [(row, *cell) for row, mine in rows for cell in mine]
    names = ["row", "family", "qualifier", "timestamp", *(["type"] if len(cells[0]) > 5 else []), "value"]
    columns: dict[str, Sequence[Any]] = dict(zip(names, zip(*cells, strict=True), strict=True))
    if text:
        columns |= {
            name: [base64.b64encode(part).decode() for part in columns[name]]
            for name in ("row", "family", "qualifier", "value")
        }
    sink = io.BytesIO()
    pq.write_table(pa.table({name: list(parts) for name, parts in columns.items()}), sink, row_group_size=700)
    return sink.getvalue()


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def result(row: bytes, cells: Iterable[Sequence[Any]]) -> bytes:
    """A row as HBase's ``Result`` message."""
    out = b""
    for family, qualifier, at, *kind, value in cells:
        parts = (b"\x0a", row), (b"\x12", family), (b"\x1a", qualifier), (b"\x32", value)
        fields = [tag + _varint(len(part)) + part for tag, part in parts]
        typed = b"\x28" + _varint(_TYPES[kind[0] if kind else "Put"])
        cell = b"".join(fields[:3]) + b"\x20" + _varint(at) + typed + fields[3]
        out += b"\x0a" + _varint(len(cell)) + cell
    return out + b"\x10" + _varint(1)


def as_export(rows: Sequence[Row], *, compress: str | None = None) -> bytes:
    """A SequenceFile of HBase's Export; ``compress``: ``record`` or ``block``, with zlib."""

    def text(value: bytes) -> bytes:
        assert len(value) < 128
        return bytes([len(value)]) + value

    sync = bytes(range(16))
    out = [b"SEQ\x06", text(b"org.apache.hadoop.hbase.io.ImmutableBytesWritable")]
    out += [text(b"org.apache.hadoop.hbase.client.Result"), bytes([compress is not None, compress == "block"])]
    out += [text(b"org.apache.hadoop.io.compress.DefaultCodec")] if compress else []
    out += [struct.pack(">i", 0), sync]
    for at, (row, cells) in enumerate(rows):
        key, message = struct.pack(">i", len(row)) + row, result(row, cells)
        value = _varint(len(message)) + message
        if compress == "block":
            parts = [_vint(len(key)), key, _vint(len(value)), value]
            out += [struct.pack(">i", -1), sync, _vint(1)]
            out += [_vint(len(packed)) + packed for packed in map(zlib.compress, parts)]
            continue
        value = zlib.compress(value) if compress else value
        if at % 7 == 3:
            out += [struct.pack(">i", -1), sync]
        out += [struct.pack(">ii", len(key) + len(value), len(key)), key, value]
    return b"".join(out)


def _vint(number: int) -> bytes:
    if number <= 127:
        return bytes([number])
    size = (number.bit_length() + 7) // 8
    return bytes([256 - 112 - size]) + number.to_bytes(size, "big")


FORMS: dict[str, Callable[[Sequence[Row]], bytes]] = {
    "lines.jsonl": as_json,
    "lines.jsonl.gz": lambda rows: gzip.compress(as_json(rows)),
    "cells.parquet": as_parquet,
    "text.parquet": lambda rows: as_parquet(rows, text=True),
    "part-m-00000": as_export,
    "part-m-00001": lambda rows: as_export(rows, compress="record"),
    "part-m-00002": lambda rows: as_export(rows, compress="block"),
}


@contextlib.contextmanager
def _here() -> Iterator[Workers]:
    yield Workers(LocalEngine, lambda function, operations: [function(operation) for operation in operations])


def load(settings: Settings, place: Path, table: str, **options: Any) -> ReplayReport:  # noqa: ANN401
    """Replay the scans of a table (``namespace:table``) below ``place``, in this process."""
    scan = Scan(SourceTable(*table.split(":")), **options.pop("of", {}))
    return replay_dumps(settings, str(place), Window(), _here, scan=scan, **options)


def settings(lake: Path, *tables: dict[str, Any], **sections: Any) -> Settings:  # noqa: ANN401 - any YAML value
    """Settings of a stream with these entries of ``tables.cells``."""
    document = {
        "name": "shop",
        "lake": {"uri": str(lake), "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": ["hbase.wal"]},
        "tables": {"cells": list(tables), **sections.pop("tables", {})},
        **sections,
    }
    return Settings.parse(json.dumps(document))


def stored(lake: Path, table: str) -> pa.Table:
    """The rows of a table of cells, by key: CELL_SCHEMA and ``_binlake_order``."""
    opened = HudiTable.open(open_storage(str(lake / table.replace(".", "/"))))
    names = [*CELL_SCHEMA.names, "_binlake_order"]
    pieces = [read_file_slice(opened, piece, columns=names).select(names) for piece in opened.file_slices()]
    return pa.concat_tables(pieces).sort_by([(name, "ascending") for name in CELL_KEY])


def cells_in(lake: Path, table: str) -> set[RawCell]:
    """The cells that a table of cells has."""
    held = stored(lake, table)
    binary = [bytes_of(held[name].combine_chunks()).to_pylist() for name in ("row", "qualifier")]
    families = [name.encode() for name in held["family"].to_pylist()]
    others = [held[name].to_pylist() for name in ("timestamp", "kind", "value")]
    columns = zip(binary[0], families, binary[1], *others, strict=True)
    return {RawCell(CellPlace(*place[:4]), place[4], place[5] or b"") for place in columns}
