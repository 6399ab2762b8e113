"""The files of a dump in their written form: one for each topic partition and hour of the records dumped together.

A file's name contains the offsets, ``<topic>+<partition>+<first>-<end>``: those of all records dumped together,
including records of other hours in other files. The hour is that of the record's Kafka timestamp (UTC). Names and bytes
depend on the records alone, so a repeated dump gives the same files.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from binlake.decode.changes import RawRecords
from binlake.settings import DumpSettings
from binlake.settings.dumps import WRITTEN
from binlake.source.dump_layout import DumpLayout, safe_topic, times
from binlake.source.dump_records import COLUMNS, line_of
from binlake.source.offsets import OffsetRange
from hudilake.errors import ConfigError

_NAME = re.compile(r"(?P<topic>.+)\+(?P<partition>\d+)\+(?P<first>\d+)-(?P<end>\d+)\.")
_GZIP_LEVEL = 6


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to write: path below the dump's root, the records of one partition and hour, and their number."""

    path: str
    chunks: tuple[RawRecords, ...]

    @property
    def records(self) -> int:
        """The number of records."""
        return sum(map(len, self.chunks))


class DumpFormat:
    """The paths and the encoding of dump files.

    Args:
        settings: the end of the template gives the encoding.
        ddl_topics: the topics that go to ``ddl_path``, by day.

    Raises ConfigError for a template that does not allow writing.
    """

    def __init__(self, settings: DumpSettings, ddl_topics: Iterable[str]) -> None:
        self._layout, self._ddl_path, self._ddl_topics = (
            DumpLayout.of(settings),
            settings.ddl_path,
            frozenset(ddl_topics),
        )
        pattern = self._layout.pattern
        suffix = next((end for end in WRITTEN if pattern.endswith(end)), None)
        if suffix is None or pattern.count("*") != 1 or set("?[") & set(pattern):
            raise ConfigError(
                "files cannot be written by this template: its last part must be a name with one * that ends in "
                f"{', '.join(WRITTEN)}",
                do_next="correct dump.path",
                path=settings.path,
            )
        self._suffix = suffix
        self._encode = _ENCODERS[suffix]

    def files(self, whole: OffsetRange, chunks: Sequence[RawRecords]) -> Iterator[NewFile]:
        """The files for the records of a range of offsets, in order of hours."""
        by_hour: dict[int, list[RawRecords]] = {}
        for chunk in chunks:
            stamps = np.maximum(chunk.timestamps_ms, 0)
            hours = stamps // 3_600_000
            for hour in np.unique(hours).tolist():
                by_hour.setdefault(hour, []).append(chunk.select(np.flatnonzero(hours == hour).tolist()))
        by_directory: dict[str, list[RawRecords]] = {}
        for hour, parts in sorted(by_hour.items()):
            by_directory.setdefault(self._directory(whole.topic, hour), []).extend(parts)
        for directory, parts in by_directory.items():
            yield NewFile(f"{directory}/{self._name(whole)}", tuple(parts))

    def encode(self, file: NewFile) -> bytes:
        """A file's bytes."""
        return self._encode(file.chunks)

    def _directory(self, topic: str, hour: int) -> str:
        if topic in self._ddl_topics:
            return f"{self._ddl_path}/{safe_topic(topic)}/dt={times(hour)['date']}"
        return self._layout.directory(topic, hour)

    def _name(self, whole: OffsetRange) -> str:
        stem = f"{safe_topic(whole.topic)}+{whole.partition}+{whole.start:012d}-{whole.end:012d}"
        if whole.topic in self._ddl_topics:
            return stem + self._suffix
        return self._layout.pattern.replace("*", stem)


def range_of(name: str) -> tuple[str, int, int, int] | None:
    """(topic as spelled in names, partition, first offset, end) from a file's name; None for another program's file."""
    name_match = _NAME.search(name)
    return (
        (name_match["topic"], int(name_match["partition"]), int(name_match["first"]), int(name_match["end"]))
        if name_match
        else None
    )


def _lines(chunks: Sequence[RawRecords]) -> bytes:
    lines: list[bytes] = []
    for c in chunks:
        columns = zip(c.offsets.tolist(), c.timestamps_ms.tolist(), c.keys, c.values, strict=True)
        lines += (line_of(c.topic, c.partition, offset, stamp, key, value) for offset, stamp, key, value in columns)
    return b"".join(lines)


def _gzip(chunks: Sequence[RawRecords]) -> bytes:
    return gzip.compress(_lines(chunks), _GZIP_LEVEL, mtime=0)


def _zstd(chunks: Sequence[RawRecords]) -> bytes:
    compressed: bytes = pa.Codec("zstd", compression_level=3).compress(_lines(chunks), asbytes=True)
    return compressed


def _parquet(chunks: Sequence[RawRecords]) -> bytes:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, COLUMNS, compression="zstd") as writer:
        for c in chunks:
            count = len(c)
            columns = [[c.topic] * count, np.full(count, c.partition), c.offsets, c.timestamps_ms, c.keys, c.values]
            arrays = [pa.array(cells, field.type) for cells, field in zip(columns, COLUMNS, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=COLUMNS))
    return sink.getvalue()


_ENCODERS: dict[str, Callable[[Sequence[RawRecords]], bytes]] = {
    ".jsonl": _lines,
    ".jsonl.gz": _gzip,
    ".jsonl.zst": _zstd,
    ".parquet": _parquet,
}
