"""Scans of HBase-like stores as files of every form, and their replay."""

from __future__ import annotations

import base64
import gzip
import io
import json
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner, Result

from binlake.cli.app import app
from tests.binlake.hbase.recordings import RawCell

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
    pq.write_table(pa.table({name: list(parts) for name, parts in columns.items()}), sink, row_group_size=100)
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
    ".jsonl": as_json,
    ".jsonl.gz": lambda rows: gzip.compress(as_json(rows)),
    "cells.parquet": as_parquet,
    "text.parquet": lambda rows: as_parquet(rows, text=True),
    "part-m-00000": as_export,
    "part-m-00001": lambda rows: as_export(rows, compress="record"),
    "part-m-00002": lambda rows: as_export(rows, compress="block"),
}


def write(place: Path, cells: Iterable[RawCell], form: str = "a.jsonl", *, raw: bool = True) -> Path:
    """A file with the scan of these cells, in the form of FORMS that ends its name; its directory."""
    place.mkdir(exist_ok=True)
    made = next(make for ending, make in FORMS.items() if form.endswith(ending))
    (place / form).write_bytes(made(rows_of(cells, raw=raw)))
    return place


def load(conf: Path, place: Path, table: str, *options: str) -> Result:
    """``binlake replay`` of the scans of a table below ``place``, in this process."""
    asked = ["--scan", table, "--from", str(place), "--in-process", "--no-display", *options]
    return CliRunner().invoke(app, ["replay", str(conf), *asked])
