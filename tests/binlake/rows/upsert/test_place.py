"""The rows of a change batch at their places: names, keys and paths of rows and before images stay together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from binlake.decode.changes import Op
from binlake.rows.upsert.place import PlacedRows, removed_as_deletes, unusable_paths
from hudilake.errors import UnsupportedError
from tests.binlake.rows.upsert.history import values
from tests.binlake.rows.upsert.ingest import change_batch, placed, table_rules
from tests.model import Change, Delivered, Shape

BY_REGION = Shape(("id",), "region", "identity", "region")
BY_DAY = Shape(("code", "id"), "at", "day", "at_day")
WITHOUT_KEY = Shape((), "region", "identity", "region")


def row(number: int, region: str | None = "eu", code: str = "a") -> dict[str, Any]:
    return {"id": number, "code": code, "region": region, **values(number)}


def rows_of(shape: Shape, *changes: Change) -> PlacedRows:
    batch = change_batch(shape, [Delivered(change, 0, offset) for offset, change in enumerate(changes)])
    return placed(batch, table_rules(shape, 4))


def updates(shape: Shape) -> PlacedRows:
    """An insert, an update that moves, a delete, an update that stays."""
    return rows_of(
        shape,
        Change(8, 0, None, row(1)),
        Change(9, 0, row(2), row(2, "us")),
        Change(10, 0, row(3), None),
        Change(11, 0, row(4), row(4, code="b")),
    )


def test_keys_and_paths_of_rows_and_before_images() -> None:
    rows = updates(BY_REGION)
    assert rows.keys.to_pylist() == ["1", "2", "3", "4"]
    assert rows.paths.to_pylist() == ["region=eu", "region=us", "region=eu", "region=eu"]
    assert rows.before is not None
    assert rows.before.keys is not None
    assert (rows.before.keys.to_pylist(), rows.before_at.tolist()) == (["2", "4"], [1, 3])
    assert rows.before.paths.to_pylist() == ["region=eu", "region=eu"]
    assert rows.orders.tolist() == rows.moments.orders.tolist() == [8, 9, 10, 11]


def test_a_computed_partition_column_stands_after_the_values() -> None:
    rows = rows_of(BY_DAY, Change(8, 0, row(1), row(2)))
    assert rows.before is not None
    assert rows.before.rows.column_names[-1] == "at_day"
    assert rows.rows.column_names[rows.rows.column_names.index("__op") - 1] == "at_day"
    assert rows.rows.column("at_day").to_pylist() != rows.before.rows.column("at_day").to_pylist()
    assert rows.keys.to_pylist() == ["code:a,id:2"]


def test_a_selection_keeps_all_parts_of_the_rows_together() -> None:
    rows = updates(BY_REGION)
    kept = rows.where(np.array([True, False, True, True]))
    assert kept.keys.to_pylist() == ["1", "3", "4"]
    assert kept.rows.column("id").to_pylist() == [1, 3, 4]
    assert (kept.moments.orders.tolist(), len(kept.removed), len(kept.paths)) == ([8, 10, 11], 3, 3)
    assert kept.before is not None
    assert (kept.before.rows.column("id").to_pylist(), kept.before_at.tolist()) == ([4], [2])
    assert rows.keys.to_pylist() == ["1", "2", "3", "4"]  # the value itself is unchanged
    assert rows.where(np.ones(4, dtype=bool)) is rows


def test_only_a_changed_path_under_the_same_key_is_a_move() -> None:
    assert updates(BY_REGION).moved().tolist() == [False, True, False, False]
    assert rows_of(BY_REGION, Change(9, 0, row(1), row(2, "us"))).moved().tolist() == [False]
    assert rows_of(Shape(("id",)), Change(9, 0, row(1), row(1, "us"))).moved().tolist() == [False]


def test_values_that_cannot_name_a_directory() -> None:
    rows = rows_of(BY_REGION, Change(8, 0, None, row(1, "x" * 300)), Change(9, 0, None, row(2)))
    assert unusable_paths(rows).tolist() == [True, False]
    assert unusable_paths(rows_of(Shape(("id",)), Change(8, 0, None, row(1, "x" * 300)))).tolist() == [False]


def test_a_removed_row_of_a_table_with_a_key_is_a_delete() -> None:
    rows = replace(updates(BY_REGION), removed=np.array([True, False, False, True]))
    made = removed_as_deletes(rows)
    assert made.rows.column("__op").to_pylist() == [Op.DELETE, Op.UPSERT, Op.DELETE, Op.DELETE]
    assert not made.removed.any()
    assert made.rows.column("code").to_pylist() == rows.rows.column("code").to_pylist()


def test_of_a_removed_row_without_a_key_only_the_former_content_is_left_to_remove() -> None:
    rows = replace(updates(WITHOUT_KEY), removed=np.array([True, True, False, False]))
    made = removed_as_deletes(rows)
    assert made.rows.column("__op").to_pylist() == [Op.UPSERT, Op.DELETE, Op.DELETE, Op.UPSERT]
    assert made.removed.tolist() == [True, False, False, False]  # an insert: nothing of it was here before
    assert made.rows.column("region").to_pylist() == ["eu", "eu", "eu", "eu"]
    assert made.paths.to_pylist() == ["region=eu"] * 4
    assert made.before is not None
    assert made.before_at.tolist() == [3]


def test_rows_that_no_statement_removed_stay_as_they_are() -> None:
    for shape in (BY_REGION, WITHOUT_KEY):
        rows = updates(shape)
        assert removed_as_deletes(rows) is rows


def test_a_key_of_a_type_without_a_text_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="record key"):
        rows_of(Shape(("ratio",)), Change(8, 0, None, row(1)))
    assert pa.types.is_float64(rows_of(Shape(("id",)), Change(8, 0, None, row(1))).rows.schema.field("ratio").type)
