"""The rows of the table: URLs with a common beginning, skewed customers, times and amounts that depend on others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Longs = npt.NDArray[np.int64]
DOMAINS, PAGES, CUSTOMERS = 3000, 20_000, 400_000
#: Microseconds from 2024-01-01 on, a year.
BEGIN, YEAR = 1_704_067_200_000_000, 365 * 86_400 * 1_000_000
_WORDS: Final = (
    "alpha",
    "bench",
    "cargo",
    "delta",
    "ember",
    "flint",
    "grove",
    "harbor",
    "iron",
    "juno",
    "kite",
    "lumen",
)
SCHEMA: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("url", pa.string()),
        ("customer", pa.int64()),
        ("placed", pa.int64()),
        ("paid", pa.int64()),
        ("cents", pa.int64()),
        ("coupon", pa.string()),
        ("note", pa.string()),
    ]
)


def batches(rows: int, files: int, seed: int = 0) -> Iterator[pa.Table]:
    """The rows as they came, in so many parts of nearly equal size.

    Rows come nearly by ``placed``. ``url`` and ``customer`` are skewed (Zipf) and come at any time; ``paid`` follows
    ``placed``, ``cents`` depends on the customer; three in ten coupons are there.
    """
    for number in range(files):
        first, last = rows * number // files, rows * (number + 1) // files
        yield _part(np.arange(first, last), rows, np.random.default_rng([seed, number]))


def _part(ids: Longs, rows: int, chance: np.random.Generator) -> pa.Table:
    count = len(ids)
    customer = _zipf(chance, 1.2, CUSTOMERS, count) * 2_654_435_761 % 1_000_003
    placed = BEGIN + ids * (YEAR // rows) + chance.integers(0, 3_600_000_000, count)
    cents = np.exp(chance.normal(6 + customer % 7 * 0.4, 0.5, count)).astype(np.int64)
    coupon = pc.binary_join_element_wise("SAVE-", pa.array(chance.integers(0, 500, count)).cast(pa.string()), "")
    digits = chance.integers(0, 1 << 62, (2, count))
    note = pc.binary_join_element_wise(*(pa.array(one).cast(pa.string()) for one in digits), "-")
    columns = {
        "id": pa.array(ids),
        "url": _urls(chance, count),
        "customer": pa.array(customer),
        "placed": pa.array(placed),
        "paid": pa.array(placed + chance.exponential(7_200_000_000, count).astype(np.int64)),
        "cents": pa.array(cents),
        "coupon": pc.if_else(pa.array(chance.random(count) < 0.3), coupon, pa.scalar(None, pa.string())),
        "note": note,
    }
    return pa.table(columns, schema=SCHEMA)


def _zipf(chance: np.random.Generator, slope: float, most: int, count: int) -> Longs:
    """Numbers from 0 on, the small ones often."""
    return (chance.zipf(slope, count) - 1).astype(np.uint64).astype(np.int64) % most


def _urls(chance: np.random.Generator, count: int) -> pa.Array:
    """``http://www.<domain>.example/<page>``: few domains have most rows."""
    numbers = _zipf(chance, 1.3, DOMAINS, count)
    names = pa.array([f"http://www.{_WORDS[n * 7 % 12]}-{n * 104_729 % 9973:04d}.example/" for n in range(DOMAINS)])
    pages = pa.array([f"page/{n:05d}.html" for n in range(PAGES)])
    page = _zipf(chance, 1.1, PAGES, count)
    return pc.binary_join_element_wise(names.take(pa.array(numbers)), pages.take(pa.array(page)), "")
