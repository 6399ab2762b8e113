"""What is read of one base file: every row that passes, for random rows of every type and random filters, by row groups
and pages of every form; and the controls: each kind of bound believed too much."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.files.log_rows import Longs
from hudilake.format.files.pages import statistics
from hudilake.format.files.pages.chunks import ChunkedFile
from hudilake.read import Eq, Filter, Gt, IsNull, Lt
from hudilake.read.filters.bounds import ColumnBounds, column_bounds
from hudilake.read.filters.expressions import normalised
from hudilake.read.inside import pieces
from hudilake.read.inside.base_rows import chosen_rows
from hudilake.read.inside.contested import NOT_HELD_BACK
from hudilake.storage import open_storage
from tests.hudilake.read import oracle
from tests.hudilake.read.inside.paged import paged_bytes
from tests.hypothesis_profile import scaled

Row = dict[str, Any]


@dataclass(frozen=True)
class Drawn:
    """The columns and rows of a file, how it is laid out, and filters."""

    columns: list[str]
    rows: list[Row]
    group_rows: int
    page_rows: int
    index: bool
    statistics: bool
    dictionary: bool
    page_version: str
    filters: list[Filter]


def files(filters: int) -> st.SearchStrategy[Drawn]:
    """Random files of two columns, mostly in the order of one of them, and so many filters at most."""
    two = st.lists(st.sampled_from(list(oracle.COLUMNS)), min_size=2, max_size=2, unique=True)
    return two.flatmap(lambda columns: _files(columns, filters))


def _files(columns: list[str], filters: int) -> st.SearchStrategy[Drawn]:
    return st.builds(
        Drawn,
        st.just(columns),
        st.builds(_ordered, oracle.rows(columns, max_size=20), st.sampled_from([None, *columns])),
        st.integers(1, 9),
        st.integers(1, 4),
        st.sampled_from([True, True, True, False]),
        st.sampled_from([True, True, True, True, False]),
        st.booleans(),
        st.sampled_from(["1.0", "2.0"]),
        st.lists(oracle.filters(columns, max_leaves=3), min_size=filters // 2, max_size=filters),
    )


def _ordered(rows: list[Row], column: str | None) -> list[Row]:
    if column is None:
        return rows
    return sorted(rows, key=lambda row: (row[column] is not None, row[column] is not None and oracle.rank(row[column])))


def disagrees(path: Path, drawn: Drawn) -> Filter | None:
    """A filter by which rows that pass are left out, or other rows are read than those chosen."""
    keys = pa.array([f"k{i:04d}" for i in range(len(drawn.rows))], pa.string())
    own = pa.schema([oracle.SCHEMA.field(name) for name in drawn.columns])
    schema = pa.schema([pa.field(RECORD_KEY_FIELD, pa.string()), *own])
    table = pa.Table.from_pylist(drawn.rows, own).add_column(0, RECORD_KEY_FIELD, keys)
    layout = drawn.group_rows, drawn.page_rows, drawn.index, drawn.statistics, drawn.dictionary, drawn.page_version
    data = paged_bytes(table, '{"type": "record", "name": "t", "fields": []}', None, *layout)
    (path / "file.parquet").write_bytes(data)
    for part in map(normalised, drawn.filters):
        file = ChunkedFile(open_storage(str(path)), "file.parquet", len(data))
        chosen = chosen_rows(file, schema, part, NOT_HELD_BACK)
        read = file.read(schema.names, chosen).column(RECORD_KEY_FIELD).to_pylist()
        passing = [
            key for key, row in zip(keys.to_pylist(), drawn.rows, strict=True) if oracle.truth(part, row) is True
        ]
        if not set(passing) <= set(read) or len(set(read)) != len(read):
            return part
    return None


@pytest.mark.full
@settings(
    deadline=None,
    max_examples=scaled(300),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(drawn=files(6))
def test_no_row_that_passes_is_left_out(tmp_path: Path, drawn: Drawn) -> None:
    assert disagrees(tmp_path, drawn) is None


# -- controls


def nan_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Bounds of floats believed as if they said NaN."""
    patch.setattr(pieces, "_FLOATS_MAY_BE_NAN", False)


def nulls_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Null counts taken for zero."""
    take = ColumnBounds.take

    def without(self: ColumnBounds, places: Longs) -> ColumnBounds:
        return replace(take(self, places), has_nulls=np.zeros(len(places), dtype=np.bool_))

    patch.setattr(ColumnBounds, "take", without)


def pages_are_taken_for_their_neighbours(patch: pytest.MonkeyPatch) -> None:
    """The bounds of the page before."""
    take = ColumnBounds.take
    patch.setattr(ColumnBounds, "take", lambda self, places: take(self, np.maximum(places - 1, 0)))


def decimals_are_unsigned(patch: pytest.MonkeyPatch) -> None:
    """The stored bytes of negative decimals taken for great numbers."""
    value = statistics._value

    def unsigned(kind: pa.DataType, stored: statistics.Stored | None) -> Any:  # noqa: ANN401 - a bound
        if pa.types.is_decimal(kind) and isinstance(stored, bytes):
            return int.from_bytes(stored, "big")
        return value(kind, stored)

    patch.setattr(statistics, "_value", unsigned)


def unknown_bounds_hold_nothing(patch: pytest.MonkeyPatch) -> None:
    """Where no bounds are known, no row is expected."""

    def without(kind: pa.DataType, ranges: Sequence[ColumnRange | None]) -> ColumnBounds:
        found = column_bounds(kind, ranges)
        indexed = np.array([item is not None for item in ranges], dtype=np.bool_)
        return replace(found, has_values=found.has_values & indexed, has_nulls=found.has_nulls & indexed)

    patch.setattr(pieces, "column_bounds", without)


def _file(column: str, values: list[Any], part: Filter, statistics: bool = True) -> Drawn:
    return Drawn([column], [{column: value} for value in values], 4, 1, True, statistics, False, "1.0", [part])


#: A broken rule, and a file and a filter that show it.
MUTATIONS: list[tuple[Callable[[pytest.MonkeyPatch], None], Drawn]] = [
    (nan_is_forgotten, _file("double", [1.0, 2.0, math.nan, 3.0], Gt("double", 100.0))),
    (nulls_are_forgotten, _file("n", [1, None, None, 2], IsNull("n"))),
    (pages_are_taken_for_their_neighbours, _file("n", [1, 2, 3, 4], Eq("n", 3))),
    (decimals_are_unsigned, _file("wide", [Decimal(-1), Decimal(-2), Decimal(-3)], Lt("wide", 0))),
    (unknown_bounds_hold_nothing, _file("n", [1, 2, 3, 4], Eq("n", 3), statistics=False)),
]


@pytest.mark.parametrize(("mutate", "drawn"), MUTATIONS, ids=[mutate.__name__ for mutate, _ in MUTATIONS])
def test_the_controls_a_bound_that_is_believed_too_much_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None], drawn: Drawn
) -> None:
    assert disagrees(tmp_path, drawn) is None
    mutate(monkeypatch)
    assert disagrees(tmp_path, drawn) is not None
