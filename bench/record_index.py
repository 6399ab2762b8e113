"""What the record index costs: to build, to keep, to ask. ``python -m bench.record_index``.

A table of 5 million rows in 50 file groups by default, keys of ten digits in no order, few columns, on local disk,
every write synced. Its record index is built from the files; then commits insert rows, each into a new file group, and
keys are looked up, half of them known. Prints seconds and bytes, and the same commits of a table without the index.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from hudilake.clock import monotonic_s
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, KeyChanges
from hudilake.format.files.first_write import write_base_anew
from hudilake.index.record import RecordIndex
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.initialise import drop
from hudilake.metadata.services.compaction import compact
from hudilake.policies import IndexType
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable

ORDER = "_binlake_order"
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("amount", pa.float64()), pa.field(ORDER, pa.int64())])
_NONE = pa.array([], pa.string())


def table_of(root: Path, index: IndexType, fsync: str, groups: int) -> HudiTable:
    """An empty table."""
    storage = open_storage(root.as_uri(), {"fsync": fsync})
    config = TableConfig("bench", ("id",), ORDER, 0, kind=TableKind(index=index))
    return HudiTable.create(storage, config, SCHEMA, MetadataConfig(record_index_file_groups=groups))


def insert(table: HudiTable, ids: list[np.typing.NDArray[np.int64]]) -> float:
    """One commit, each array of ids into a new file group; returns its seconds without those of the data files."""
    instant = table.begin()
    context = table.write_context(instant)
    results = []
    for numbers in ids:
        name = f"{uuid.uuid4()}-0"  # noqa: TID251 - a measurement
        rows = pa.table({"id": numbers, "amount": numbers / 7.0, ORDER: np.ones(len(numbers), dtype=np.int64)})
        rows = rows.add_column(0, RECORD_KEY_FIELD, rows.column("id").cast(pa.string())).sort_by(RECORD_KEY_FIELD)
        changes = KeyChanges("", name, rows.column(RECORD_KEY_FIELD).combine_chunks(), _NONE)
        written = write_base_anew(table.storage, context, FileGroupWrite("", name, upserts=rows))
        results += [dataclasses.replace(result, keys=changes) for result in written]
    started = monotonic_s()
    table.commit(instant, results)
    if (trouble := table.maintain()) is not None:
        raise RuntimeError(trouble)
    return monotonic_s() - started


def timed(act: Callable[[], object]) -> float:
    """Seconds of a call."""
    started = monotonic_s()
    act()
    return monotonic_s() - started


def _line(what: str, figure: str) -> None:
    print(f"| {what} | {figure} |")


def _index_bytes(root: Path) -> int:
    return sum(file.stat().st_size for file in (root / ".hoodie/metadata/record_index").iterdir())


def _lookups(table: HudiTable, ids: np.typing.NDArray[np.int64], sizes: list[int]) -> None:
    for size in sizes:
        known = np.random.default_rng(size).choice(ids, size // 2, replace=False)
        asked = pa.array(np.concatenate((known, known + (1 << 40)))).cast(pa.string())
        paths = pa.array([""] * len(asked))
        for turn in ("first", "next"):
            found = RecordIndex(table).locate(asked, paths)
            assert len(asked) - found.file_ids.null_count == len(known)
            cost = found.cost
            _line(f"look up {size:,} keys, {turn}", f"{cost.seconds:.2f} s, {cost.bytes_read / 1e6:.1f} MB")


def measure(place: Path, keys: int, files: int, batch: int, commits: int, groups: int, fsync: str) -> None:
    """Measure and print."""
    ids = np.random.default_rng(1).permutation(keys + 3 * commits * batch) + 10**9
    first, rest = ids[:keys], ids[keys:].reshape(-1, batch)
    kinds: tuple[IndexType, ...] = ("record_index", "global_simple")
    tables = {kind: table_of(place / kind, kind, fsync, groups) for kind in kinds}
    for table in tables.values():
        insert(table, np.array_split(first, files))
    indexed, root = tables["record_index"], place / "record_index"
    drop(indexed.storage, indexed.config)
    indexed = HudiTable.open(indexed.storage)
    bare = HudiTable.open(tables["global_simple"].storage)
    drop(bare.storage, bare.config)
    bare = HudiTable.open(bare.storage)
    config = MetadataConfig(record_index_file_groups=groups, compact_after=1_000, compact_at_most=1_000)
    without = timed(lambda: bare.keep_metadata(config))
    _line(
        f"build it for {keys:,} keys in {files} files",
        f"{timed(lambda: indexed.keep_metadata(config)) - without:.1f} s",
    )
    _line("its size", f"{_index_bytes(root) / 1e6:.1f} MB")
    spent = {
        kind: [insert(one, [rest[n]]) for n in range(commits)] for kind, one in (("with", indexed), ("without", bare))
    }
    for kind, seconds in spent.items():
        _line(f"publish a commit of {batch:,} inserts, {kind} it", f"{statistics.median(seconds) * 1000:.0f} ms")
    _lookups(indexed, first, [100, 10_000, 100_000])
    metadata = indexed.metadata_table
    assert metadata is not None
    with indexed.exclusively():
        _line(f"compact the metadata table after {commits} commits", f"{timed(lambda: compact(metadata)):.1f} s")
    _lookups(indexed, first, [100_000])


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=5_000_000)
    parser.add_argument("--files", type=int, default=50)
    parser.add_argument("--batch", type=int, default=100_000)
    parser.add_argument("--commits", type=int, default=5)
    parser.add_argument("--file-groups", type=int, default=4)
    parser.add_argument("--fsync", choices=("true", "false"), default="true")
    given = parser.parse_args()
    print("| | |\n| --- | --- |")
    with tempfile.TemporaryDirectory(prefix="binlake-bench-") as place:
        measure(Path(place), given.keys, given.files, given.batch, given.commits, given.file_groups, given.fsync)


if __name__ == "__main__":
    main()
