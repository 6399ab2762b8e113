"""The case of column names: rows take on the spelling that their lake table has."""

from __future__ import annotations

import pyarrow as pa
import pytest

from binlake.decode.changes import META_FIELDS, ChangeBatch, Column, SourceTable, TableSchema
from binlake.rows.upsert.shape import first_spellings, spelled
from hudilake.format.definition.column_names import known_as, lake_name, respelled


def batch(*columns: str, key: str) -> ChangeBatch:
    schema = TableSchema(SourceTable("d", "t"), tuple(Column(c, "", pa.int32()) for c in columns), (key,))
    rows = pa.table({**{c: pa.array([1], pa.int32()) for c in columns}, **{f.name: [0] for f in META_FIELDS}})
    return ChangeBatch(schema, "t", rows, rows.select(list(columns)))


def test_rows_and_before_images_take_on_the_known_names() -> None:
    made = spelled(batch("ID", "a-B", "c", key="ID"), ["id", "A_b", "gone"])
    assert made.schema.key == ("id",)
    assert [c.name for c in made.schema.columns] == ["id", "A-b", "c"]
    assert made.rows.column_names[:3] == ["id", "A-b", "c"]
    assert made.before is not None
    assert made.before.column_names == ["id", "A-b", "c"]


@pytest.mark.parametrize("known", [(), ("id", "a"), ("x",)])
def test_rows_with_the_known_names_stay_as_they_are(known: tuple[str, ...]) -> None:
    made = batch("id", "a", key="id")
    assert spelled(made, known) is made


@pytest.mark.parametrize(
    ("column", "lake"), [("A", "a"), ("1A", "_1a"), ("Ö-Xy", "_u00d6_xY"), ("a b", "A_B"), ("", "_")]
)
def test_a_respelled_name_has_that_lake_name(column: str, lake: str) -> None:
    assert known_as(column, ["other", lake]) == lake
    assert lake_name(respelled(column, lake)) == lake
    assert respelled(column, lake).lower() == column.lower()


def test_an_equal_name_goes_before_one_that_differs_in_case() -> None:
    assert known_as("a", ["A", "a"]) == "a"
    assert known_as("b", ["A", "a"]) is None


def test_the_first_spelling_stays() -> None:
    assert first_spellings(["id", "a"], ["id", "a", "b"]) is None
    assert first_spellings(["id", "a"], ["ID", "b"]) == ("id", "a", "b")
    assert first_spellings([], ["id", "a", "A"]) == ("id", "a")
