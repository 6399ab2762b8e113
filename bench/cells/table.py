"""A table of cells of many rows, as compactions leave it: a base file a bucket, 5 to 12 cells a row, 7 on average."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.cells import CELL_KEY, ROW, CellKind
from binlake.hbase.derive.cell_runs import STORED_SCHEMA
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.tables.lake_table import LakeTable
from hudilake.format.definition.bucket import bucket_ids
from hudilake.format.definition.keys import record_keys
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, WriteContext, WriteResult
from hudilake.write.group_writer import BaseWriter

Longs = npt.NDArray[np.int64]

FIRST_MS: Final = 1_760_000_000_000
#: (family, qualifier, share of the rows that have it, older version), in the order of record keys.
SLOTS: Final = (
    ("d", "amount", 1.0, False),
    ("d", "city", 1.0, False),
    ("d", "created", 1.0, False),
    ("d", "status", 0.5, True),
    ("d", "status", 1.0, False),
    ("d", "user_id", 1.0, False),
    *(("m", f"attribute_{name}", 0.25, False) for name in "abcdef"),
)
_LONGS: Final = ("amount", "created", "user_id")


@dataclass(frozen=True)
class Shape:
    """The size of the table."""

    rows: int
    buckets: int


def row_texts(numbers: Longs) -> pa.Array:
    """The row keys of numbers, which scatter them: 13 characters."""
    scattered = (numbers * 2_654_435_761) % 10_000_000_000
    return pa.array(np.char.add("o", np.char.zfill(scattered.astype("U10"), 12)))


def load(table: LakeTable | None, shape: Shape) -> None:
    """Write the rows of the table, as a commit of base files. It is a table of cells that the stream has made."""
    assert table is not None
    hudi = table.hudi
    context = hudi.write_context(hudi.begin())
    texts = row_texts(np.arange(shape.rows, dtype=np.int64))
    homes = bucket_ids(texts, (ROW,), shape.buckets)

    def write(bucket: int) -> WriteResult:
        return _write(table, context, bucket, texts.filter(pa.array(homes == bucket)))

    with ThreadPoolExecutor(2) as pool:
        hudi.commit(context.instant, list(pool.map(write, range(shape.buckets))))


def _write(table: LakeTable, context: WriteContext, bucket: int, texts: pa.Array) -> WriteResult:
    cells = cells_of(texts.take(pa.compute.sort_indices(texts)), np.random.default_rng(bucket))
    keyed = cells.add_column(0, RECORD_KEY_FIELD, record_keys(cells, CELL_KEY))
    group = FileGroupWrite("", table.names.of("", bucket), upserts=keyed)
    (result,) = BaseWriter(context, {}).write_anew(table.storage, group)
    return result


def cells_of(texts: pa.Array, random: np.random.Generator) -> pa.Table:
    """The cells of sorted rows, in the order of their record keys."""
    has = np.stack([random.random(len(texts)) < share for _, _, share, _ in SLOTS], axis=1)
    row, slot = np.nonzero(has)
    put = FIRST_MS + random.integers(0, 80_000_000, len(texts))[row]
    older = np.array([old for *_, old in SLOTS])[slot]
    stamps = put - np.where(older, 100_000_000, 0)
    columns: dict[str, pa.Array] = {
        ROW: texts.take(pa.array(row)),
        "family": pa.array([family for family, *_ in SLOTS]).take(pa.array(slot)),
        "qualifier": pa.array([qualifier for _, qualifier, *_ in SLOTS]).take(pa.array(slot)),
        "timestamp": pa.array(stamps),
        "kind": pa.array([CellKind.PUT.value]).take(pa.array(np.zeros(len(slot), dtype=np.int64))),
        "value": values(slot, random),
        "written": pa.array(stamps * 1000, pa.timestamp("us", tz="UTC")),
        ORDER_FIELD: pa.array(stamps - FIRST_MS + 1_000_000_000),
    }
    return pa.table(columns, schema=STORED_SCHEMA)


def values(slot: Longs, random: np.random.Generator) -> pa.Array:
    """A value for each slot: longs as HBase's ``Bytes`` writes them, or text of 10 to 26 characters."""
    longs = np.array([qualifier in _LONGS for _, qualifier, *_ in SLOTS])[slot]
    pool = pa.array([f"value-{number:0{4 + number % 17}}".encode() for number in range(20_000)], pa.binary())
    text = pool.take(pa.array(random.integers(0, len(pool), len(slot))))
    packed = random.integers(0, 1 << 40, len(slot)).astype(">i8").tobytes()
    long_values = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(slot), [None, pa.py_buffer(packed)])
    return pa.compute.if_else(pa.array(longs), long_values.cast(pa.binary()), text)


def touched(shape: Shape, count: int, skewed: bool, random: np.random.Generator) -> Iterator[pa.Array]:
    """Batches of distinct rows that changes touch: uniform over all rows, or nine in ten of the newest hundredth (of
    the newest rows that a batch needs, where a hundredth is fewer)."""
    while True:
        if skewed:
            many = count * 9 // 10
            old = shape.rows - max(shape.rows // 100, many)
            newest = old + random.choice(shape.rows - old, many, replace=False)
            yield row_texts(np.concatenate([newest, random.choice(old, count - many, replace=False)]))
        else:
            yield row_texts(random.choice(shape.rows, count, replace=False))
