"""Rows a second and core of each step that brings rows into an order: sketch, bounds, keys, places.

Run: ``python -m bench.orders [--rows 2000000] [--rounds 3]``. Times are those of the process, so that others on the
machine count little.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.layout.bounds import bounds_of
from hudilake.format.layout.order import Order, places, sort_keys
from hudilake.format.layout.sketch import sample_size, sketch
from hudilake.policies import OrderPolicy

Result = TypeVar("Result")
_BATCH_ROWS = 65_536
#: What the rows are ordered by.
COLUMNS = {
    "2 numbers": ("number", "skewed"),
    "4 numbers": ("number", "skewed", "double", "later"),
    "2 URLs": ("url", "referrer"),
    "2 numbers, 2 URLs": ("number", "skewed", "url", "referrer"),
}
ORDERS = [
    ("linear", "sampled"),
    ("z_order", "sampled"),
    ("z_order", "direct"),
    ("hilbert", "sampled"),
    ("hilbert", "direct"),
]


def rows(count: int) -> pa.Table:
    """Random rows: numbers, skewed numbers, and URLs of which a few shops have most."""
    random = np.random.default_rng(18)

    def urls() -> pa.Array:
        shop, page = np.minimum(random.zipf(1.5, count), 500).astype(str), random.integers(0, count, count).astype(str)
        return pc.binary_join_element_wise("http://www.shop-", pa.array(shop), ".example/", pa.array(page), "")

    number = random.integers(0, 1 << 40, count)
    return pa.table(
        {
            "number": number,
            "skewed": np.minimum(random.zipf(1.3, count), 1 << 40),
            "double": random.normal(size=count),
            "later": pa.array(number + random.integers(0, 1 << 30, count), pa.timestamp("us")),
            "url": urls(),
            "referrer": urls(),
        }
    )


def timed(work: Callable[[], Result], rounds: int) -> tuple[Result, float]:
    """What the work gives, and the least seconds of a round."""
    least = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        result = work()
        least = min(least, time.process_time() - start)
    return result, least


def rates(table: pa.Table, order: Order, rounds: int) -> Iterator[str]:
    """Million rows a second of each step."""
    batches = [table.slice(at, _BATCH_ROWS) for at in range(0, table.num_rows, _BATCH_ROWS)]
    sketches, sketching = timed(lambda: [sketch(order, batches, 0, sample_size(1))] if order.sampled else [], rounds)
    bounds, bounding = timed(lambda: bounds_of(order, sketches), rounds)
    keys, keying = timed(lambda: [sort_keys(order, batch, bounds) for batch in batches], rounds)
    found, sorting = timed(lambda: places(keys), rounds)
    if not np.array_equal(np.sort(found), np.arange(table.num_rows)):
        raise SystemExit("the places are no permutation of the rows")
    for seconds in (sketching, bounding, keying, sorting, sketching + bounding + keying + sorting):
        yield f"{table.num_rows / seconds / 1e6:8.1f}" if seconds > 1e-3 else f"{'-':>8}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    table = rows(arguments.rows)
    steps = " ".join(f"{step:>8}" for step in ("sketch", "bounds", "keys", "places", "all"))
    print(f"{'million rows a second':36} {steps}")
    for name, columns in COLUMNS.items():
        for curve, values in ORDERS:
            policy = OrderPolicy.model_validate({"columns": columns, "curve": curve, "values": values})
            print(f"{name:18} {curve:8} {values:8}", *rates(table, Order(policy), arguments.rounds))


if __name__ == "__main__":
    main()
