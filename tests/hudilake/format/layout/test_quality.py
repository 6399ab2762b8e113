"""Orders keep files apart: rows are sorted, cut into files of equal size, and queries meet files by least and greatest
value of columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from hudilake.format.layout.bounds import bounds_of
from hudilake.format.layout.cuts import SLACK, ends, seams
from hudilake.format.layout.order import Order, places, sort_keys
from hudilake.format.layout.sketch import sketch
from hudilake.policies import Curve, OrderPolicy

_ROWS = 40_960
_FILES = 64
#: The files that a condition on one of two columns meets, if each column is divided into equally many parts.
_IDEAL = 8
_QUERIES = 60

Places = npt.NDArray[np.int64]
Layout = Callable[[tuple[str, str]], Places]


@cache
def rows() -> pa.Table:
    """Pages seen by customers: few customers see most pages, later customers come later, and some have no referrer."""
    random = np.random.default_rng(18)
    customer = np.minimum(random.zipf(1.2, _ROWS), 50_000)
    seen = customer * 3 + random.integers(0, 30_000, _ROWS)
    shop, page = np.minimum(random.zipf(1.5, _ROWS), 500), random.integers(0, 100_000, _ROWS)
    referrer = random.integers(0, 1000, _ROWS)
    return pa.table(
        {
            "customer": customer,
            "seen": pa.array(seen, pa.timestamp("us")),
            "url": [f"http://www.shop-{s:03}.example/{p:06}" for s, p in zip(shop, page, strict=True)],
            "page": page,
            "referrer": pa.array([f"https://r{r:04}" for r in referrer], mask=random.random(_ROWS) < 0.3),
        }
    )


def ordered(columns: tuple[str, str], curve: Curve, values: str) -> Places:
    order = Order(OrderPolicy.model_validate({"columns": columns, "curve": curve, "values": values}), seed=3)
    parts = [rows().slice(at, 9000) for at in range(0, _ROWS, 9000)]
    bounds = bounds_of(order, [sketch(order, [part], number, 2000) for number, part in enumerate(parts)])
    return places([sort_keys(order, part, bounds) for part in parts])


def unordered(columns: tuple[str, str]) -> Places:
    return np.random.default_rng(len(columns)).permutation(_ROWS)


LAYOUTS: dict[str, Layout] = {
    "z_order": lambda columns: ordered(columns, "z_order", "sampled"),
    "hilbert": lambda columns: ordered(columns, "hilbert", "sampled"),
    "direct": lambda columns: ordered(columns, "z_order", "direct"),
    "linear": lambda columns: ordered(columns, "linear", "sampled"),
    "none": unordered,
}


@cache
def ranks(column: str) -> Places:
    """The rank of each value among the distinct ones; -1 for null."""
    values = rows().column(column).to_pylist()
    number = {value: rank for rank, value in enumerate(sorted({value for value in values if value is not None}))}
    return np.array([number.get(value, -1) for value in values])


def met(layout: Places, columns: tuple[str, str], wide: tuple[float, float]) -> float:
    """How many files a query meets on average.

    ``wide``: the share of the rows that the range of a column holds; 0 for one value, 1 for no condition.
    """
    random = np.random.default_rng(4)
    hit = np.ones((_QUERIES, _FILES), dtype=np.bool_)
    for column, share in zip(columns, wide, strict=True):
        if share == 1:
            continue
        found = ranks(column)
        files = found[layout].reshape(_FILES, -1)
        least = np.where(files < 0, 1 << 40, files).min(axis=1)
        greatest = files.max(axis=1)
        known = np.sort(found[found >= 0])
        first = random.integers(0, len(known) - int(share * len(known)), _QUERIES)
        low, high = known[first], known[first + int(share * len(known))]
        hit &= (least <= high[:, None]) & (greatest >= low[:, None])
    return float(hit.sum(axis=1).mean())


PAIRS = [("url", "page"), ("customer", "url"), ("customer", "seen"), ("referrer", "page")]
#: One value; a tenth of the rows.
POINT, RANGE = 0.0, 0.1


def worst(layout: Places, columns: tuple[str, str], share: float) -> float:
    """The files that a query on one of the columns meets, for the worse one."""
    return max(met(layout, columns, (share, 1)), met(layout, columns, (1, share)))


@pytest.mark.parametrize("columns", PAIRS, ids="-".join)
@pytest.mark.parametrize("name", ["z_order", "hilbert"])
def test_queries_on_any_column_meet_few_files(name: str, columns: tuple[str, str]) -> None:
    layout = LAYOUTS[name](columns)
    assert sorted(layout.tolist()) == list(range(_ROWS))
    assert worst(layout, columns, POINT) < 2 * _IDEAL
    assert worst(layout, columns, RANGE) < 2.5 * _IDEAL
    assert met(layout, columns, (0.2, 0.2)) < 1.5 * _IDEAL
    assert met(layout, columns, (POINT, POINT)) < 3


@pytest.mark.parametrize("columns", PAIRS, ids="-".join)
def test_control_without_an_order_queries_meet_all_files(columns: tuple[str, str]) -> None:
    assert met(unordered(columns), columns, (POINT, POINT)) > 0.9 * _FILES


@pytest.mark.parametrize("columns", PAIRS, ids="-".join)
def test_control_a_linear_order_serves_its_first_column_only(columns: tuple[str, str]) -> None:
    layout = LAYOUTS["linear"](columns)
    assert met(layout, columns, (POINT, 1)) < 0.7 * _IDEAL
    assert met(layout, columns, (1, POINT)) > 3 * _IDEAL


@pytest.mark.parametrize(("columns", "prefixed"), [(PAIRS[0], 0), (PAIRS[1], 1), (PAIRS[3], 0)])
def test_control_direct_mapping_does_not_see_behind_a_common_prefix(columns: tuple[str, str], prefixed: int) -> None:
    wide = (POINT, 1.0) if prefixed == 0 else (1.0, POINT)
    direct = met(LAYOUTS["direct"](columns), columns, wide)
    assert direct > 0.7 * _FILES
    assert direct > 4 * met(LAYOUTS["z_order"](columns), columns, wide)


def test_rows_without_a_value_are_together() -> None:
    layout = LAYOUTS["z_order"](("referrer", "page"))
    files = (ranks("referrer")[layout] < 0).reshape(_FILES, -1)
    share = float((ranks("referrer") < 0).mean())
    assert files.any(axis=1).mean() < 1.3 * share
    control = (ranks("referrer")[unordered(("referrer", "page"))] < 0).reshape(_FILES, -1)
    assert control.any(axis=1).all()


def test_the_same_rows_and_seed_give_the_same_order() -> None:
    columns = PAIRS[1]
    assert np.array_equal(LAYOUTS["z_order"](columns), LAYOUTS["z_order"](columns))


@pytest.mark.parametrize("curve", ["z_order", "hilbert"])
def test_files_that_end_at_seams_are_met_less(curve: Curve) -> None:
    """Of 40 files, which are no whole cells of the curve."""
    columns, files = ("url", "page"), 40
    order = Order(OrderPolicy(columns=columns, curve=curve))
    keys = [sort_keys(order, rows(), bounds_of(order, [sketch(order, [rows()], 0)]))]
    layout = places(keys)
    equal = np.arange(1, files) * _ROWS // files
    cut = ends(np.arange(1, _ROWS + 1), files, seams(order, keys, layout))
    assert np.abs(cut - equal).max() <= SLACK * _ROWS / files + 1
    met_equal, met_cut = (
        sum(spans(layout, column, marks) for column in columns) for marks in (equal.tolist(), cut.tolist())
    )
    assert met_cut < 0.97 * met_equal


def spans(layout: Places, column: str, marks: list[int]) -> float:
    """How many files a row's value of the column meets on average."""
    found = ranks(column)[layout]
    parts = np.split(found, marks)
    return float(sum(((found >= part.min()) & (found <= part.max())).mean() for part in parts))
