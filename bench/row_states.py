"""``python -m bench.row_states [KEYS]``: what it costs to ask what rows are now, and to write whole and partial rows.

A file group of KEYS rows (1,000,000) with two column groups is written as a base file. The lookup is timed with an
empty memory (``cold``), from memory (``warm``), and after a commit whose log file has to be read (``forward``). Then
2,000 of 20,000 rows of tables of 10, 100 and 1,000 columns are changed in a tenth of their columns, as whole rows and
as partial ones.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from binlake.rows.merging.mergers import StitchMerger
from binlake.rows.merging.row_states import SliceRowStates
from binlake.rows.merging.state_cache import ORDERS_BYTES, KeptOrders, StateCache
from binlake.rows.merging.states import MergeResult
from binlake.rows.merging.stitch import ColumnLayout, Partial
from binlake.rows.merging.write import write_merged
from binlake.rows.upsert.merge import Place
from binlake.rows.upsert.route import GROUP, KEY
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.bucket import file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.merging import ColumnGroup, Merging
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from hudilake.write.group_writer import LogWriter

PLACE: Place = ("", 0)
ASKED = (1_000, 100_000)
_KINDS: tuple[Partial, ...] = ("never", "always")
CHANGED, STORED = 2_000, 20_000


@dataclass
class Bench:
    """A table of one bucket. ``columns``: of the two groups together; the second has a tenth of them."""

    root: Path
    columns: int

    def __post_init__(self) -> None:
        narrow = max(1, self.columns // 10)
        values = [f"c{n}" for n in range(self.columns)]
        groups = (ColumnGroup("main", None), ColumnGroup("features", tuple(values[:narrow])))
        self.merging = Merging("stitched", groups)
        hidden = (ORDER_FIELD, *self.merging.hidden_fields)
        fields = [pa.field("id", pa.string())] + [pa.field(n, pa.float64()) for n in values]
        self.schema = pa.schema([*fields, *(pa.field(n, pa.int64()) for n in hidden)])
        config = TableConfig("t", ("id",), ORDER_FIELD, 1).with_merging(self.merging)
        self.storage = open_storage(self.root.as_uri(), {"fsync": "false"})
        self.table = HudiTable.create(self.storage, config, self.schema)
        self.name, self.cache = file_id("t", *PLACE), StateCache[KeptOrders](ORDERS_BYTES)

    def events(self, keys: pa.Array, group: int, order: int) -> pa.Table:
        """An upsert of each key in one group."""
        count = len(keys)
        names = [n for n in self.schema.names if n.startswith("c")]
        mine = self.merging.columns_of(self.merging.groups[group], tuple(names))
        some = np.random.default_rng(order)
        columns = {KEY: keys, "id": keys, **{name: pa.array(some.integers(0, 10_000, count) / 100) for name in mine}}
        columns["__op"] = pa.array(np.zeros(count, dtype=np.int8))
        columns["__order"] = pa.array(np.full(count, order, dtype=np.int64))
        columns["__row"] = pa.array(np.zeros(count, dtype=np.int32))
        columns["__offset"] = pa.array(np.arange(count, dtype=np.int64))
        columns["__partition"] = pa.array(np.zeros(count, dtype=np.int32))
        columns[GROUP] = pa.array(np.full(count, group, dtype=np.int8))
        return pa.table(columns)

    def states(self) -> SliceRowStates:
        """The row states of now."""
        slices = {piece.file_id: piece for piece in self.table.file_slices()}
        return SliceRowStates(self.storage, self.table.timeline, self.schema, self.merging, slices, self.cache)

    def merged(self, rows: pa.Table, kind: Partial) -> MergeResult:
        """What the events make of the file group."""
        layout = ColumnLayout(self.merging, self.schema, ("id",))
        return StitchMerger(layout, self.states(), kind).merge(PLACE, self.name, rows)

    def commit(self, merged: MergeResult, base_from_rows: int | None = None) -> int:
        """Commit it; bytes of the files."""
        context = self.table.write_context(self.table.begin())
        context = type(context)(**{**vars(context), "base_from_rows": base_from_rows})
        results = write_merged(self.storage, LogWriter(context), merged)
        self.table.commit(context.instant, results)
        return sum(result.size_bytes for result in results)


def keys_of(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    """Record keys of 12 characters."""
    return pa.array(np.char.add("key-", np.char.zfill(numbers.astype(np.str_), 8)))


def timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def lookups(root: Path, count: int) -> None:
    """Print the times and the memory of lookups among ``count`` keys."""
    here = Bench(root, 10)
    here.commit(here.merged(here.events(keys_of(np.arange(count)), 0, 1), "never"), base_from_rows=1)
    longs = (*here.merging.hidden_fields, ORDER_FIELD)
    chosen = np.random.default_rng(0)
    for asked in (n for n in ASKED if n <= count):
        keys = keys_of(chosen.choice(count, asked, replace=False))
        here.cache = StateCache[KeptOrders](ORDERS_BYTES)

        def ask(keys: pa.Array = keys) -> None:
            here.states().of(PLACE, here.name, keys, longs)

        cold, warm = timed(ask), min(timed(ask) for _ in range(5))
        here.commit(here.merged(here.events(keys, 1, 2 + asked), "always"))
        forward = timed(ask)
        values = timed(partial(here.states().of, PLACE, here.name, keys, ["c0", "c5"]))
        print(
            f"{count:>9,} keys, {asked:>7,} asked: cold {cold:8.1f} ms, warm {warm:7.1f} ms, "
            f"forward {forward:7.1f} ms, two values {values:8.1f} ms, {here.cache.nbytes / count:5.1f} bytes a key"
        )


def widths(root: Path) -> None:
    """Print the bytes and times of whole and of partial rows, and of reading them."""
    for columns in (10, 100, 1_000):
        for kind in _KINDS:
            here = Bench(root / f"{columns}-{kind}", columns)
            here.commit(here.merged(here.events(keys_of(np.arange(STORED)), 0, 1), "never"), base_from_rows=1)
            written, spent = 0, 0.0
            for turn in range(5):
                some = keys_of(np.random.default_rng(turn).choice(STORED, CHANGED, replace=False))
                rows = here.events(some, 1, 2 + turn)
                started = time.perf_counter()
                layout = ColumnLayout(here.merging, here.schema, ("id",))
                merger = StitchMerger(layout, here.states(), kind)
                written += here.commit(merger.merge(PLACE, here.name, rows))
                spent += time.perf_counter() - started
            read = timed(partial(here.states().of, PLACE, here.name, keys_of(np.arange(9)), ["c0", "c9"]))
            print(
                f"{columns:>5} columns, partial rows {kind:>6}: {written / 5 / CHANGED:9.1f} bytes a row, "
                f"{spent / 5 * 1000:8.1f} ms a commit of {CHANGED:,}, {read:7.1f} ms to read two columns"
            )


def main() -> None:
    """Everything, on a temporary folder."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        lookups(Path(folder) / "keys", count)
        widths(Path(folder))


if __name__ == "__main__":
    main()
