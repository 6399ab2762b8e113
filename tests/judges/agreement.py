"""The judges' verdict on a table: every reader must give the rows the model expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from hudilake.read.slice import read_table
from hudilake.storage import open_storage
from tests.judges import hudi_rs
from tests.judges.hudi_spark import HudiSpark
from tests.judges.rows import Row, canonical

Rows: TypeAlias = "pa.Table | Iterable[Mapping[str, object]]"


def assert_same(who: str, actual: Rows, expected: Rows, columns: Sequence[str] | None = None) -> None:
    """Raise AssertionError with the first rows that differ."""
    found, wanted = canonical(actual, columns), canonical(expected, columns)
    if found == wanted:
        return
    missing, surplus = _difference(wanted, found), _difference(found, wanted)
    lines = [f"{who} gives {len(found)} rows where {len(wanted)} are expected"]
    for absent, odd in list(zip_longest(missing, surplus))[:5]:
        lines += [f"  missing: {absent}", f"  surplus: {odd}"]
    raise AssertionError("\n".join(lines))


def _difference(some: list[Row], others: list[Row]) -> list[Row]:
    left = list(others)
    result = []
    for row in some:
        if row in left:
            left.remove(row)
        else:
            result.append(row)
    return result


def read_ourselves(uri: str | Path, as_of: str | None = None) -> pa.Table:
    """The rows through binlake's own reader, meta fields among them."""
    return pa.concat_tables([pa.table({}), *read_table(open_storage(str(uri)), as_of=as_of)], promote_options="default")


def assert_judges_agree(
    uri: str | Path,
    expected: Sequence[Mapping[str, object]],
    *,
    spark: HudiSpark | None = None,
    columns: Sequence[str] | None = None,
) -> None:
    """Our reader, hudi-rs and, if given, Hudi Spark with and without the metadata table show exactly the expected rows.

    Args:
        uri: the table's root.
        expected: rows of Python values; timestamps with a time zone.
        spark: the judge's session.
        columns: to compare, meta fields among them if wanted; None compares every column but these, and a table
            without rows then has nothing to compare but their number.
    """
    assert_same("binlake", read_ourselves(uri), expected, columns)
    assert_same("hudi-rs", hudi_rs.snapshot(uri), expected, columns)
    if spark is not None:
        assert_same("Hudi Spark", spark.snapshot(str(uri)), expected, columns)
        by_listing = spark.with_options(hoodie__metadata__enable="false")
        assert_same("Hudi Spark without the metadata table", by_listing.snapshot(str(uri)), expected, columns)
