"""A data table that keeps its metadata table: every step by the real parts, in the order a writer takes them."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudilake.clock import InstantClock
from hudilake.format.definition.bucket import bucket_ids, file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.schema import META_FIELDS, RECORD_KEY_FIELD, avro_schema
from hudilake.format.files.base_file import encode_base_file
from hudilake.format.files.bloom import BloomFilter
from hudilake.format.files.column_stats import column_ranges
from hudilake.format.files.file_group_write import FileGroupWrite, WriteResult, write_file_group
from hudilake.format.files.names import BaseFileName
from hudilake.format.files.view import file_slices
from hudilake.format.timeline.avro_container import encode_container
from hudilake.format.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat
from hudilake.format.timeline.instant import CLEAN, COMPACTION, DELTA_COMMIT, Instant, State
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.describe import describe_file
from hudilake.metadata.first_base import empty_file, write_first_base
from hudilake.metadata.initialise import initialise
from hudilake.metadata.records.delta import AddedFile, MetadataDelta
from hudilake.metadata.services.rollback import roll_back
from hudilake.metadata.services.upkeep import maintain, recover
from hudilake.metadata.table import MetadataTable
from hudilake.read.slice import read_file_slice
from hudilake.storage.base import FileInfo, Storage
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable

ORDER = "_binlake_order"


def arrow_schema(columns: Mapping[str, pa.DataType]) -> pa.Schema:
    """Key ``id`` and order first, then the columns."""
    own = [pa.field(name, kind) for name, kind in columns.items()]
    return pa.schema([pa.field("id", pa.int64()), *own, pa.field(ORDER, pa.int64())])


@dataclass
class IndexedTable:
    """``write`` takes rows as dictionaries; ``part`` names the partition column, if there is one.

    ``wrap`` puts something between the code under test and the disk.
    """

    path: Path
    schema: pa.Schema
    part: str | None = None
    buckets: int = 2
    config: MetadataConfig = field(default_factory=MetadataConfig)
    indexed: bool = True
    wrap: Callable[[Storage], Storage] = lambda storage: storage
    storage: Storage = field(init=False)

    def __post_init__(self) -> None:
        self.storage = self.wrap(LocalStorage(self.path, fsync=False))
        table = TableConfig(
            name="t",
            record_key_fields=("id",),
            ordering_field=ORDER,
            bucket_count=self.buckets,
            partition_fields=(self.part,) if self.part else (),
        )
        self.table = HudiTable.create(self.storage, table, self.schema)
        if self.indexed:
            self.initialise()

    @property
    def clock(self) -> InstantClock:
        return self.table.clock

    def copied(self, path: Path) -> IndexedTable:
        """The same table in another place, not wrapped."""
        shutil.copytree(self.path, path)
        other = copy.copy(self)
        other.path, other.storage = path, LocalStorage(path, fsync=False)
        other.reopen()
        return other

    def initialise(self) -> None:
        initialise(self.storage, self.table.config, self.table.timeline, self.clock, self.table.schema, self.config)
        self.reopen()

    def reopen(self) -> None:
        """As a new process would find it."""
        table = self.table = HudiTable.open(self.storage)
        metadata = MetadataTable.open(self.storage, table.config, table.timeline, self.clock, table.schema, self.config)
        assert metadata is not None
        self.metadata = metadata
        table.state.config = table.config.with_metadata_partitions(())  # or HudiTable would note commits itself

    def write(
        self,
        rows: Iterable[Mapping[str, Any]],
        deletes: Iterable[Mapping[str, Any]] = (),
        schema: pa.Schema | None = None,
    ) -> str:
        """One commit of upserts and deletes; returns its instant."""
        instant, results, delta = self.begin_write(rows, deletes, schema)
        self.metadata.apply(instant, delta, schema)
        self.table.commit(instant, results, schema=schema)
        maintain(self.metadata)
        return instant

    def begin_write(
        self,
        rows: Iterable[Mapping[str, Any]],
        deletes: Iterable[Mapping[str, Any]] = (),
        schema: pa.Schema | None = None,
    ) -> tuple[str, list[WriteResult], MetadataDelta]:
        """Everything up to the metadata table."""
        instant = self.table.begin()
        context = self.table.write_context(instant, schema)
        groups = self._groups(rows, deletes, context.arrow_schema)
        new = self.metadata.new_groups((g.partition_path, f".{g.file_id}_{instant}.log.1_0-0-0") for g in groups)
        columns = tuple(self.metadata.columns_under(context.arrow_schema))
        empty = empty_file(context.arrow_schema, "t", columns)
        first = [write_first_base(self.storage, group, instant, empty) for group in sorted(new)]
        results = [write_file_group(self.storage, context, g) for g in groups]
        return instant, results, MetadataDelta((*first, *(self._added(r, context.arrow_schema) for r in results)))

    def _added(self, result: WriteResult, schema: pa.Schema) -> AddedFile:
        info, columns = FileInfo(result.path, result.size_bytes, 0), self.metadata.columns_under(schema)
        return describe_file(self.storage, result.partition_path, info, columns, with_bloom=False)

    def _groups(
        self, rows: Iterable[Mapping[str, Any]], deletes: Iterable[Mapping[str, Any]], schema: pa.Schema
    ) -> list[FileGroupWrite]:
        grouped: dict[tuple[str, int], tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]] = {}
        for place, items in enumerate((list(rows), list(deletes))):
            keys = pa.array([str(row["id"]) for row in items], pa.string())
            for row, bucket in zip(items, bucket_ids(keys, ["id"], self.buckets).tolist(), strict=True):
                partition = f"{self.part}={row[self.part]}" if self.part else ""
                grouped.setdefault((partition, bucket), ([], []))[place].append(row)
        return [
            FileGroupWrite(
                partition,
                file_id("t", partition, bucket),
                _keyed(upserts, schema) if upserts else None,
                _keyed(gone, pa.schema([schema.field(ORDER)])) if gone else None,
            )
            for (partition, bucket), (upserts, gone) in sorted(grouped.items())
        ]

    def compact(self) -> str:
        """A compaction of the data table: base files of all file slices that have log files."""
        slices = [s for s in file_slices(self.storage, self.table.timeline) if s.log_files]
        requested = Instant(self.clock.next(), COMPACTION, State.REQUESTED)
        self._record(requested, b"")
        self._record(requested.in_state(State.INFLIGHT), b"")
        added, stats = [], []
        schema_json = avro_schema(self.table.schema, "t", with_meta=True)
        for item in slices:
            name = BaseFileName(item.file_id, requested.requested_time)
            path = f"{item.partition_path}/{name}".lstrip("/")
            rows = _with_file_name(read_file_slice(self.table, item), str(name))
            bloom = BloomFilter.of(rows.column(RECORD_KEY_FIELD))
            data = encode_base_file(rows, schema_json, (bloom.kind, bloom.to_base64()))
            self.storage.write(path, data)
            ranges = column_ranges(rows, self.metadata.columns)
            added.append(AddedFile(item.partition_path, str(name), len(data), ranges, (bloom.kind, bloom.to_base64())))
            stats.append(
                WriteStat(
                    item.partition_path,
                    item.file_id,
                    path,
                    prev_commit="null",
                    num_writes=rows.num_rows,
                    file_size=len(data),
                )
            )
        self.metadata.apply(requested.requested_time, MetadataDelta(tuple(added)))
        body = CommitMetadata(
            tuple(stats),
            {SCHEMA_KEY: avro_schema(self.table.schema, "t", with_meta=False)},
            operation="COMPACT",
            compacted=True,
        )
        self._record(requested.in_state(State.COMPLETED, self.clock.next()), body.to_bytes())
        maintain(self.metadata)
        return requested.requested_time

    def clean(self) -> list[tuple[str, str]]:
        """A clean of the data table: all files that are in no newest slice; returns them."""
        slices = file_slices(self.storage, self.table.timeline)
        live = {(s.partition_path, str(log.name)) for s in slices for log in s.log_files}
        live |= {(s.partition_path, str(s.base_file.name)) for s in slices if s.base_file is not None}
        gone = sorted(set(self.listed()) - live)
        requested = Instant(self.clock.next(), CLEAN, State.REQUESTED)
        self._record(requested, b"")
        self._record(requested.in_state(State.INFLIGHT), b"")
        for path, name in gone:
            self.storage.delete(f"{path}/{name}".lstrip("/"))
        self.metadata.apply(requested.requested_time, MetadataDelta(deleted=tuple(gone)))
        body = {
            "startCleanTime": requested.requested_time,
            "timeTakenInMillis": 0,
            "totalFilesDeleted": len(gone),
            "earliestCommitToRetain": "",
            "partitionMetadata": {},
        }
        completed = requested.in_state(State.COMPLETED, self.clock.next())
        self._record(completed, encode_container("HoodieCleanMetadata", body))
        maintain(self.metadata)
        return gone

    def abort(self, instant: str) -> None:
        """Roll an inflight commit back, on both tables."""
        roll_back(self.metadata, instant, self.clock.next())
        self.table.abort(instant)

    def recover(self) -> None:
        """What a writer does at its start."""
        self.reopen()
        for pending in self.table.timeline.pending():
            if pending.action == DELTA_COMMIT:
                roll_back(self.metadata, pending.requested_time, self.clock.next())
        self.table.rollback_pending()
        recover(self.metadata)

    def listed(self) -> dict[tuple[str, str], int]:
        """The data files on storage by partition path and name, with their sizes."""
        found = {}
        for file in self.path.rglob("*"):
            relative = file.relative_to(self.path)
            if file.is_file() and ".hoodie" not in relative.parts and not file.name.startswith(".hoodie"):
                parent = str(relative.parent)
                found["" if parent == "." else parent, file.name] = file.stat().st_size
        return found

    def rows(self) -> dict[int, dict[str, Any]]:
        """The live rows by id, through the table's own reader."""
        tables = [read_file_slice(self.table, s) for s in file_slices(self.storage, self.table.timeline)]
        return {row["id"]: row for table in tables for row in table.to_pylist()}

    def _record(self, instant: Instant, body: bytes) -> None:
        self.storage.create(instant.path, body)
        self.table.timeline.record(instant)


def _keyed(rows: list[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    keys = pa.array([str(row["id"]) for row in rows], pa.string())
    columns = [pa.array([row.get(f.name) for row in rows], f.type) for f in schema]
    table = pa.Table.from_arrays([keys, *columns], names=[RECORD_KEY_FIELD, *schema.names])
    return table.take(pc.sort_indices(table, [(RECORD_KEY_FIELD, "ascending")]))


def _with_file_name(rows: pa.Table, name: str) -> pa.Table:
    at = rows.schema.get_field_index(META_FIELDS[4])
    return rows.set_column(at, META_FIELDS[4], pa.array([name] * rows.num_rows, pa.string()))
