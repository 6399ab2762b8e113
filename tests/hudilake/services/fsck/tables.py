"""Sound tables to damage: a plain one and one with a metadata table, both with base files and log files."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from hudi import HudiTableBuilder

from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.locking.process_lock import ProcessLock
from hudilake.metadata.records.log_write import encode_logs
from hudilake.metadata.table import MetadataTable
from hudilake.read.slice import read_table
from hudilake.services.fsck import Finding, OffsetKeys, Report, Severity, fsck
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable
from tests.hudilake import lake
from tests.hudilake.metadata.indexed_table import IndexedTable, arrow_schema

KEYS = OffsetKeys("binlake.stream", "binlake.offsets", "binlake.counts")
COLUMNS = arrow_schema({"name": pa.string(), "p": pa.string(), "x": pa.int64()})


def offsets(start: int, end: int, already_applied: int = 0) -> dict[str, str]:
    """The keys that a stream leaves in a commit."""
    return {
        KEYS.stream: "s",
        KEYS.offsets: json.dumps({"t": {"0": [start, end]}}),
        KEYS.counts: json.dumps({"already_applied": already_applied}),
    }


def make_plain(path: Path) -> Path:
    """Log files only, three commits, two partitions."""
    table = lake.new_table(path)
    for n in range(3):
        changes = [*lake.upserts(range(n, n + 6), n + 1), *lake.upserts(range(3), n + 1, day="d2")]
        lake.commit(table, [*changes, *lake.deletes([20 + n], n + 1)], offsets(n * 10, n * 10 + 10))
    return path


def make_indexed(path: Path) -> Path:
    """A metadata table, base files and log files over them."""
    table = IndexedTable(path, COLUMNS, part="p")
    for n in range(5):
        rows = [{"id": i, "name": f"n{i}", "p": "ab"[i % 2], "x": i * 10, "_binlake_order": n} for i in range(n, n + 8)]
        table.write(rows, [{"id": 0, "p": "a", "_binlake_order": n}])
        if n == 2:
            table.compact()
    return path


def copy(source: Path, to: Path) -> Path:
    """A copy whose files are all of the same age, two hours."""
    shutil.copytree(source, to)
    age(to)
    return to


def age(path: Path, hours: float = 2) -> None:
    """Make every file below look that old."""
    then = time.time() - hours * 3600  # noqa: TID251 - the files' own clock
    for file in path.rglob("*"):
        if file.is_file():
            os.utime(file, (then, then))


def report(path: Path, **options: Any) -> Report:  # noqa: ANN401 - options of fsck()
    return fsck(lake.storage_at(path), KEYS, **options)


def told(path: Path, **options: Any) -> list[Finding]:  # noqa: ANN401 - options of fsck()
    """Errors and warnings."""
    return [f for f in report(path, **options).findings if f.severity is not Severity.INFO]


def rows(path: Path) -> list[tuple[Any, ...]]:
    """All rows through our own reader, by listing."""
    return sorted(tuple(r.values()) for t in read_table(lake.storage_at(path)) for r in t.to_pylist())


def rs_rows(path: Path) -> list[tuple[Any, ...]]:
    """All rows through hudi-rs, by the metadata table where there is one."""
    batches = HudiTableBuilder.from_base_uri(str(path)).build().read()
    names = [f.name for f in HudiTable.open(lake.storage_at(path)).schema]
    return sorted(tuple(r.values()) for b in batches for r in pa.table(b).select(names).to_pylist())


def metadata_of(path: Path) -> MetadataTable:
    table = HudiTable.open(LocalStorage(path, fsync=False))
    found = MetadataTable.open(table.storage, table.config, table.timeline, table.clock, table.schema)
    assert found is not None
    return found


def put_records(path: Path, partition: MetadataPartition, records: Mapping[str, bytes | None]) -> None:
    """Replace records of a metadata partition, under instants that change nothing of the data."""
    for batch in (dict.fromkeys(records), {k: v for k, v in records.items() if v is not None}):
        metadata = metadata_of(path)
        if batch:
            instant = metadata.clock.next()
            groups = metadata.reader.groups[partition]
            with ProcessLock(metadata.data_storage.uri):
                metadata._commit(instant, encode_logs(instant, partition, groups, dict(batch), 1))
    age(path)


def logs(path: Path) -> list[Path]:
    """The data table's log files, by path."""
    return sorted(path / p for p in lake.data_files(path) if ".log." in p)


def bases(path: Path) -> list[Path]:
    """Its base files with rows, by path."""
    files = sorted(path / p for p in lake.data_files(path) if p.endswith(".parquet"))
    return [f for f in files if pa.parquet.read_metadata(f).num_rows]
