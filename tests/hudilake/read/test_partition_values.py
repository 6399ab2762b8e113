"""Partition paths read back: the inverse of how they are spelled, and only where that is certain."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.keys import DEFAULT_PARTITION, PartitionLayout, escape_partition_value
from hudilake.read import Eq, Filter, IsNotNull, IsNull, Lt, Ne, StartsWith
from hudilake.read.filters.bounds import may_match
from hudilake.read.filters.evaluate import matches
from hudilake.read.filters.expressions import normalised
from hudilake.read.partition_values import partition_bounds, path_values, unescape_partition_value
from tests.hudilake.read.oracle import filters

TEXTS = st.one_of(st.none(), st.text('ab=/%: \x01"é', max_size=5), st.sampled_from([DEFAULT_PARTITION, "%2F", "a=b"]))


@given(text=st.text(max_size=20))
def test_escapes_are_undone(text: str) -> None:
    assert unescape_partition_value(escape_partition_value(text)) == text


@given(a=TEXTS, b=TEXTS, hive_style=st.booleans())
def test_paths_are_read_back(a: str | None, b: str | None, hive_style: bool) -> None:
    layout = PartitionLayout(("a", "b"), hive_style, url_encode=True)
    (path,) = layout.paths(pa.table({"a": pa.array([a], pa.string()), "b": pa.array([b], pa.string())})).to_pylist()
    assert path_values(path, layout) == [value or DEFAULT_PARTITION for value in (a, b)]


@pytest.mark.parametrize(
    ("path", "hive_style", "url_encode"),
    [
        ("a=1", True, True),
        ("a=1/c=2", True, True),
        ("1/2/3", False, False),
        ("a=1/b=%2f", True, True),
        ("a=1/b=x:y", True, True),
    ],
)
def test_paths_of_another_layout_say_nothing(path: str, hive_style: bool, url_encode: bool) -> None:
    assert path_values(path, PartitionLayout(("a", "b"), hive_style, url_encode)) is None


def config(*fields: str, **extra: str) -> TableConfig:
    return TableConfig(
        "t", ("id",), "o", 2, partition_fields=fields, extra={k.replace("__", "."): v for k, v in extra.items()}
    )


KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "n": (pa.int32(), st.integers(-5, 5)),
    "name": (pa.string(), st.text("ab/=%é\ue000\U0001f600", max_size=3)),
    "flag": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates(date(1969, 12, 30), date(1970, 1, 3))),
}


@given(data=st.data(), name=st.sampled_from(list(KINDS)))
def test_a_partition_with_a_row_that_passes_is_never_skipped(data: st.DataObject, name: str) -> None:
    kind, values = KINDS[name]
    table = pa.table({name: pa.array(data.draw(st.lists(st.one_of(st.none(), values), min_size=1, max_size=5)), kind)})
    part = normalised(data.draw(filters([name], max_leaves=3)))
    paths = PartitionLayout((name,)).paths(table).to_pylist()
    kept = may_match(part, partition_bounds(paths, config(name), table.schema), len(paths))
    for flag, passes in zip(kept.tolist(), matches(part, table).tolist(), strict=True):
        assert flag or not passes


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Eq("p", "a"), [True, False, True, False]),
        (Ne("p", "a"), [False, True, True, True]),
        (Lt("p", "b"), [True, False, True, True]),
        (IsNull("p"), [False, False, True, True]),
        (IsNotNull("p"), [True, True, True, True]),
        (Eq("p", DEFAULT_PARTITION), [False, False, True, True]),
        (Eq("p", ""), [False, False, True, True]),
        (StartsWith("p", "b"), [False, True, True, False]),
    ],
)
def test_what_paths_decide(part: Filter, expected: list[bool]) -> None:
    """One of another layout stays whatever is asked; null, empty and the default's own text share a path."""
    paths = ["p=a", "p=b/x", "elsewhere", f"p={DEFAULT_PARTITION}"]
    paths[1] = "p=b"
    bounds = partition_bounds(paths, config("p"), pa.schema([("p", pa.string())]))
    assert may_match(part, bounds, 4).tolist() == expected


def test_numbers_that_are_not_their_own_text_say_nothing() -> None:
    schema = pa.schema([("n", pa.int64())])
    paths = ["n=1", "n=01", "n=x", f"n={DEFAULT_PARTITION}"]
    bounds = partition_bounds(paths, config("n"), schema)
    assert may_match(Eq("n", 2), bounds, 4).tolist() == [False, True, True, False]
    assert may_match(IsNull("n"), bounds, 4).tolist() == [False, True, True, True]


def test_paths_made_by_other_generators_say_nothing() -> None:
    schema = pa.schema([("p", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])
    assert partition_bounds(["p=a"], config("p"), schema)
    assert not partition_bounds(["p=a"], config("p", hoodie__table__keygenerator__type="TIMESTAMP"), schema)
    assert not partition_bounds(["p=a"], config("p", hoodie__table__keygenerator__class="org.example.Own"), schema)
    assert not partition_bounds(["at=0"], config("at"), schema)
    assert not partition_bounds([""], config(), schema)


def test_what_another_writer_says_of_keys_survives_a_rewrite() -> None:
    """The type of the key generator decides whether paths may be read back, and how keys are spelled."""
    foreign = config("p").to_properties().replace(b"keygenerator.type=SIMPLE", b"keygenerator.type=TIMESTAMP")
    found = TableConfig.from_properties(foreign)
    assert found.properties()["hoodie.table.keygenerator.type"] == "TIMESTAMP"
    assert TableConfig.from_properties(found.to_properties()) == found
