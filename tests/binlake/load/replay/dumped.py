"""Small dumps for the tests of replay: the stream tests' events, written as files by hour."""

from __future__ import annotations

import base64
import bz2
import contextlib
import gzip
import io
import json
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from binlake.load.replay.engine import LocalEngine
from binlake.load.replay.replay_dumps import OpenWorkers, ReplayReport, ReplayWorkers, replay_dumps
from binlake.settings import Settings
from binlake.source.dump_layout import DumpLayout, Window
from hudilake.services.planned import one_by_one
from hudilake.storage import open_storage
from tests.binlake.stream.topic_log import settings as stream_settings

#: 2025-10-09T08, the hour of ``tests.binlake.stream.topic_log``'s timestamps.
HOUR = 1_760_000_000_000 // 3_600_000
TABLES = ["accounts", "orders"]
Event = tuple[str, dict[str, Any] | bytes | None, dict[str, Any] | None]


def settings(lake: Path | str, dumps: Path | str, /, **sections: Any) -> Settings:  # noqa: ANN401 - any YAML value
    """Settings of the stream of the tables above, with a dump section."""
    dump = {"uri": str(dumps), "options": {"fsync": "false"}, "base_files_from_rows": None, **sections.pop("dump", {})}
    return stream_settings(str(lake), TABLES, dump=dump, **sections)


@contextlib.contextmanager
def _here() -> Iterator[ReplayWorkers]:
    yield ReplayWorkers(LocalEngine, one_by_one)


HERE: OpenWorkers = _here


def replay(config: Settings, window: Window | None = None, **options: Any) -> ReplayReport:  # noqa: ANN401
    """A replay in this process; ``options`` of ``replay_dumps``."""
    return replay_dumps(config, None, window or Window(), HERE, **options)


def values(value: dict[str, Any] | bytes | None) -> bytes | None:
    return json.dumps(value).encode() if isinstance(value, dict) else value


def lines_of(events: Iterable[dict[str, Any] | bytes | None]) -> bytes:
    """Raw events, a line each."""
    return b"".join((values(e) or b"") + b"\n" for e in events)


def write(dumps: Path | str, table: str, hour: int, name: str, data: bytes, layout: str | None = None) -> str:
    """A file of a dump; its path."""
    template = layout or "{database}.{table}/dt={date}/hour={hour}/*"
    path = f"{DumpLayout(template).directory(f's.shop.{table}', hour)}/{name}"
    open_storage(str(dumps), {"fsync": "false"}).write(path, data)
    return path


#: A record as (topic, partition, offset, timestamp, key, value).
Record = tuple[str, int, int, int, bytes | None, bytes | None]


def as_json(records: Sequence[Record], *, nested: bool = False) -> bytes:
    lines = []
    for topic, partition, offset, stamp, key, value in records:
        line: dict[str, Any] = {"topic": topic, "partition": partition, "offset": offset, "timestamp": stamp}
        for name, content in (("key", key), ("value", value)):
            try:
                text = None if content is None else content.decode()
                line[name] = json.loads(text) if nested and text is not None else text
            except UnicodeDecodeError:
                line[f"{name}_base64"] = base64.b64encode(content or b"").decode()
            except ValueError:
                line[name] = text
        lines.append(json.dumps(line).encode())
    return b"\n".join(lines)


def as_parquet(records: Sequence[Record]) -> bytes:
    names = ["topic", "partition", "offset", "timestamp", "key", "value"]
    columns = dict(zip(names, map(list, zip(*records, strict=True)), strict=True))
    table = pa.table(columns)
    stamps = table.column("timestamp").cast(pa.timestamp("ms", tz="UTC"))
    table = table.set_column(3, "timestamp", stamps)
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def as_avro(records: Sequence[Record], *, needs: bool = False) -> bytes:
    """``needs``: the schema allows no record without key and value."""
    maybe = ["bytes"] if needs else ["null", "bytes"]
    fields: list[dict[str, Any]] = [
        {"name": "topic", "type": "string"},
        {"name": "partition", "type": "int"},
        {"name": "offset", "type": "long"},
        {"name": "timestamp", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "key", "type": maybe},
        {"name": "value", "type": maybe},
    ]
    names = [str(field["name"]) for field in fields]
    sink = io.BytesIO()
    rows = [dict(zip(names, record, strict=True)) for record in records]
    schema = fastavro.parse_schema({"type": "record", "name": "record", "fields": fields})
    fastavro.writer(sink, schema, rows, codec="deflate")
    return sink.getvalue()


def zstd(data: bytes) -> bytes:
    found: bytes = pa.Codec("zstd").compress(data, asbytes=True)
    return found


def _padded(records: Sequence[Record]) -> bytes:
    """A stream of xz and the zeros that may follow it."""
    return lzma.compress(as_json(records) + b"\n") + bytes(4)


def _by_arrow(data: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return bytes(sink.getvalue().to_pybytes())


FORMS: dict[str, Callable[[Sequence[Record]], bytes]] = {
    "a.jsonl": as_json,
    "a.json": lambda records: as_json(records, nested=True),
    "a.jsonl.gz": lambda records: gzip.compress(as_json(records)),
    "two-members.gz": lambda records: gzip.compress(as_json(records[:3]) + b"\n") + gzip.compress(as_json(records[3:])),
    "a.jsonl.zst": lambda records: zstd(as_json(records)),
    "two-frames.zst": lambda records: zstd(as_json(records[:3]) + b"\n") + zstd(as_json(records[3:])),
    "a.jsonl.bz2": lambda records: bz2.compress(as_json(records)),
    "two-streams.bz2": lambda records: bz2.compress(as_json(records[:3]) + b"\n") + bz2.compress(as_json(records[3:])),
    "a.jsonl.xz": lambda records: lzma.compress(as_json(records)),
    "two-streams.xz": lambda records: _padded(records[:3]) + _padded(records[3:]),
    "a.jsonl.lzma": lambda records: lzma.compress(as_json(records), lzma.FORMAT_ALONE),
    "a.jsonl.lz4": lambda records: _by_arrow(as_json(records), "lz4"),
    "two-frames.lz4": lambda records: (
        _by_arrow(as_json(records[:3]) + b"\n", "lz4") + _by_arrow(as_json(records[3:]), "lz4")
    ),
    "a.jsonl.br": lambda records: _by_arrow(as_json(records), "brotli"),
    "a.jsonl.deflate": lambda records: zlib.compress(as_json(records)),
    "a.parquet": as_parquet,
    "a.avro": as_avro,
}
