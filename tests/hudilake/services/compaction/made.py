"""File slices made file by file, also such as only other writers make, and the two who read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudilake.format.definition.schema import META_FIELDS, RECORD_KEY_FIELD, avro_schema
from hudilake.format.files.base_file import encode_base_file
from hudilake.format.files.delete_block import encode_deletes
from hudilake.format.files.log_file import encode_data_block, encode_delete_block
from hudilake.format.files.names import BaseFileName, LogFileName, parse_base_name, parse_log_name
from hudilake.format.files.parquet_file import encode_parquet
from hudilake.format.files.view import BaseFile, FileSlice, LogFile
from hudilake.format.timeline.instant import DELTA_COMMIT, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.read.slice import SliceReader
from hudilake.services.compaction import (
    CompactedFile,
    CompactionConfig,
    CompactionContext,
    CompactionOperation,
    compact_file_group,
)
from hudilake.services.compaction.task import CompletedInstants
from hudilake.storage.local import LocalStorage

ORDER, GROUP, NAME = "ord", "00000000-0000-0000-0000-000000000001-0", "t"
SCHEMA = pa.schema([pa.field("id", pa.string()), pa.field("n", pa.int64()), pa.field(ORDER, pa.int64())])
META = pa.schema([pa.field(name, pa.string()) for name in META_FIELDS])
COMPACTION = "20240101000100000"

Row = dict[str, Any]


def instant(number: int) -> str:
    """The requested time of the n-th commit."""
    return f"20240101000000{number:03d}"


def row(key: str, order: int, commit: int, **values: Any) -> Row:  # noqa: ANN401 - cells
    """A row as the n-th commit wrote it."""
    time = instant(commit)
    return {
        "_hoodie_commit_time": time,
        "_hoodie_commit_seqno": f"{time}_0_{key}",
        RECORD_KEY_FIELD: key,
        "_hoodie_partition_path": "",
        "_hoodie_file_name": GROUP,
        "id": key,
        ORDER: order,
        **values,
    }


@dataclass
class Slice:
    """A slice of one file group under construction."""

    storage: LocalStorage
    base: BaseFile | None = None
    logs: list[LogFile] = field(default_factory=list)
    timeline: Timeline = field(init=False)

    def __post_init__(self) -> None:
        self.timeline = Timeline(self.storage)

    @classmethod
    def at(cls, path: Path) -> Slice:
        """An empty one."""
        return cls(LocalStorage(path, fsync=False))

    def write_base(self, rows: Sequence[Row], schema: pa.Schema = SCHEMA, group_rows: int | None = None) -> None:
        """A base file with the rows in the order given."""
        table = pa.Table.from_pylist(list(rows), pa.schema([*META, *schema]))
        name = BaseFileName(GROUP, instant(0))
        data = encode_base_file(table, avro_schema(schema, NAME, with_meta=True))
        if group_rows is not None:
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, row_group_size=group_rows)
            data = sink.getvalue().to_pybytes()
        self.storage.write(str(name), data)
        self.base = BaseFile("", name, len(data))
        self.completed(instant(0))

    def write_log(
        self,
        commit: int,
        rows: Sequence[Row] = (),
        deletes: Sequence[tuple[str, int | None]] = (),
        schema: pa.Schema = SCHEMA,
    ) -> None:
        """The log file of the n-th commit; a delete without an ordering value is unconditional."""
        time, avro = instant(commit), avro_schema(schema, NAME, with_meta=True)
        blocks = []
        if rows:
            table = pa.Table.from_pylist(list(rows), pa.schema([*META, *schema]))
            blocks.append(encode_data_block(time, avro, encode_parquet(table, "zstd", 1)))
        ordered = [d for d in deletes if d[1] is not None]
        for group, kept in ((ordered, True), ([d for d in deletes if d[1] is None], False)):
            if group:
                keys = pa.array([key for key, _ in group])
                content = encode_deletes(keys, pa.array([o for _, o in group], pa.int64()) if kept else None, "")
                blocks.append(encode_delete_block(time, avro, content))
        name = LogFileName(GROUP, time)
        self.storage.write(str(name), b"".join(blocks))
        self.logs.append(LogFile("", name, sum(map(len, blocks))))
        self.completed(time)

    def completed(self, time: str) -> None:
        """Note a completed delta commit."""
        if self.timeline.find(time) is None:
            self.timeline.record(Instant(time, DELTA_COMMIT, State.COMPLETED, time))

    def read(self, schema: pa.Schema = SCHEMA) -> list[Row]:
        """By the reader, in key order."""
        reader = SliceReader(self.storage, pa.schema([*META, *schema]), ORDER, self.timeline)
        rows = reader.read(FileSlice("", GROUP, self.base, tuple(self.logs))).to_pylist()
        return sorted(rows, key=lambda r: r[RECORD_KEY_FIELD])

    def operation(self) -> CompactionOperation:
        """The plan for it."""
        return CompactionOperation.of(FileSlice("", GROUP, self.base, tuple(self.logs)), tuple(self.logs))

    def context(self, config: CompactionConfig, schema: pa.Schema = SCHEMA) -> CompactionContext:
        """What a task gets."""
        return CompactionContext(
            instant=COMPACTION,
            avro_schema_json=avro_schema(schema, NAME, with_meta=True),
            arrow_schema=schema,
            ordering_field=ORDER,
            completed=CompletedInstants.of(self.timeline),
            config=config,
            restated_hours=config.tombstone_retention_hours,
            indexed_columns=("_hoodie_commit_time", RECORD_KEY_FIELD, *schema.names),
        )

    def compact(self, config: CompactionConfig | None = None, schema: pa.Schema = SCHEMA) -> CompactedFile:
        """By the task."""
        context = self.context(config or CompactionConfig(tombstone_retention_hours=0), schema)
        return compact_file_group(self.storage, context, self.operation())

    def compact_at(self, time: str, config: CompactionConfig) -> CompactedFile:
        """By the task, under another instant."""
        return compact_file_group(self.storage, replace(self.context(config), instant=time), self.operation())

    def go_on_from(self, done: CompactedFile, time: str) -> None:
        """The slice that a compaction opened."""
        base = parse_base_name(done.base.name)
        assert base is not None
        self.base = BaseFile("", base, done.base.size)
        logs = [parse_log_name(file.name) for file in done.added]
        self.logs = [LogFile("", log, 1) for log in logs if log is not None]
        self.completed(time)

    def base_file(self, made: CompactedFile) -> pq.ParquetFile:
        """The base file that a task wrote."""
        return pq.ParquetFile(pa.BufferReader(self.storage.read(made.base.name)))
