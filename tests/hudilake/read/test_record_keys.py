"""The record keys a filter binds, and their buckets."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudilake.format.definition.bucket import bucket_ids
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.keys import record_keys
from hudilake.read import And, Eq, Filter, Ge, In, IsNull, Ne, Or, Unknown
from hudilake.read.filters.expressions import FALSE, normalised
from hudilake.read.record_keys import MAX_KEYS, bound_values, index_buckets, key_lookup
from tests.hudilake.read.oracle import filters, rows, truth

CONFIG = TableConfig(
    "t", ("id",), "o", 8, extra={"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "SIMPLE"}
)
SCHEMA = pa.schema(
    [
        ("_hoodie_record_key", pa.string()),
        ("id", pa.int64()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("price", pa.decimal128(10, 2)),
    ]
)


def keys(part: Filter, config: TableConfig = CONFIG) -> list[str] | None:
    found = key_lookup(normalised(part), config, SCHEMA)
    return None if found is None else sorted(found.keys.to_pylist())


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Eq("id", 6), ["6"]),
        (Eq("id", Decimal("6.0")), ["6"]),
        (Eq("id", 6.5), []),
        (Ge("id", 6), None),
        (Ne("id", 6), None),
        (In("id", (1, 2)), ["1", "2"]),
        (And((In("id", (1, 2)), Eq("id", 2))), ["2"]),
        (Or((Eq("id", 1), And((Eq("id", 2), Eq("name", "x"))))), ["1", "2"]),
        (Or((Eq("id", 1), Eq("name", "x"))), None),
        (And((Eq("id", 1), Unknown("f(x)"))), ["1"]),
        (Eq("_hoodie_record_key", "id:7"), ["id:7"]),
        (In("id", tuple(range(MAX_KEYS + 1))), None),
        (FALSE, []),
    ],
)
def test_bound_keys(part: Filter, expected: list[str] | None) -> None:
    assert keys(part) == expected


def test_all_fields_of_a_composite_key_must_be_bound() -> None:
    config = replace(CONFIG, record_key_fields=("id", "name"))
    assert keys(Eq("id", 1), config) is None
    assert keys(And((In("id", (1, 2)), In("name", ("", "x,y:z")))), config) == [
        "id:1,name:__empty__",
        "id:1,name:x,y:z",
        "id:2,name:__empty__",
        "id:2,name:x,y:z",
    ]
    assert keys(And((Eq("id", 1), IsNull("name"))), config) is None
    assert keys(And((In("id", tuple(range(200))), In("name", tuple(map(str, range(200)))))), config) is None


def test_a_single_field_may_be_spelled_with_its_name() -> None:
    """Hudi's COMPLEX generator writes ``id:6`` or ``6``, by version and settings."""
    complex_one = replace(CONFIG, partition_fields=("day", "name"))
    assert complex_one.keygenerator_type == "COMPLEX"
    assert keys(Eq("id", 6), complex_one) == ["6", "id:6"]
    said = replace(CONFIG, extra={**CONFIG.extra, "hoodie.table.keygenerator.type": "COMPLEX"})
    assert keys(Eq("id", 6), said) == ["6", "id:6"]


def test_keys_whose_text_depends_on_the_writer_are_not_looked_up() -> None:
    config = replace(CONFIG, record_key_fields=("at",))
    assert keys(Eq("at", date(2024, 2, 29)), config) is None
    assert keys(Eq("day", date(2024, 2, 29)), replace(CONFIG, record_key_fields=("day",))) == ["2024-02-29"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("1.5"), ["1.5", "1.50"]),
        (Decimal("-0.05"), ["-0.05"]),
        (0, ["0", "0.0", "0.00"]),
        (Decimal("1.505"), []),
    ],
)
def test_a_decimal_is_spelled_with_the_scale_that_its_column_had(value: Decimal, expected: list[str]) -> None:
    assert keys(Eq("price", value), replace(CONFIG, record_key_fields=("price",))) == expected


@given(unscaled=st.integers(-(10**10) + 1, 10**10 - 1), scale=st.integers(0, 9))
def test_decimals_are_spelled_as_the_writer_does(unscaled: int, scale: int) -> None:
    """Also below a millionth, where exponents begin (Java and Arrow write them alike)."""
    kind = pa.decimal128(38, scale)
    value = Decimal(unscaled).scaleb(-scale)
    schema = pa.schema([("_hoodie_record_key", pa.string()), ("price", pa.decimal128(38, 12))])
    found = key_lookup(Eq("price", value), replace(CONFIG, record_key_fields=("price",)), schema)
    assert found is not None
    written = record_keys(pa.table({"price": pa.array([value], kind)}), ("price",)).to_pylist()
    assert set(written) <= set(found.keys.to_pylist())


@given(ids=st.lists(st.integers(-50, 50), min_size=1, max_size=6, unique=True), text=st.text("a,:é", max_size=3))
def test_the_buckets_are_those_of_the_writer(ids: list[int], text: str) -> None:
    config = replace(CONFIG, record_key_fields=("id", "name"))
    found = key_lookup(normalised(And((In("id", tuple(ids)), Eq("name", text)))), config, SCHEMA)
    written = record_keys(pa.table({"id": ids, "name": [text] * len(ids)}), ("id", "name"))
    assert found is not None
    assert (buckets := found.buckets(config)) is not None
    assert buckets.of("") == set(bucket_ids(written, ("id", "name"), 8).tolist())


@given(
    names=st.lists(st.text("a,:é", max_size=3), min_size=1, max_size=4, unique=True), other=st.text("a,:", max_size=3)
)
def test_a_part_of_the_key_decides_the_bucket(names: list[str], other: str) -> None:
    config = replace(CONFIG, record_key_fields=("name", "id"), index_fields=("name",))
    assert TableConfig.from_properties(config.to_properties()).hash_fields == ("name",)
    found = index_buckets(normalised(In("name", tuple(names))), config, SCHEMA)
    if any("," in name for name in names):
        assert found is None
        return
    rows = pa.table({"name": names, "id": [other] * len(names)})
    assert found is not None
    assert found.of("") == set(bucket_ids(record_keys(rows, ("name", "id")), ("name",), 8).tolist())
    whole = key_lookup(normalised(And((In("name", tuple(names)), Eq("id", 1)))), config, SCHEMA)
    assert whole is not None
    assert (buckets := whole.buckets(config)) is not None
    assert buckets.of("") == found.of("")


def test_a_condition_that_does_not_bind_the_hashed_part_has_no_buckets() -> None:
    config = replace(CONFIG, record_key_fields=("name", "id"), index_fields=("name",))
    assert index_buckets(Eq("id", 1), config, SCHEMA) is None
    assert index_buckets(Ge("name", "a"), config, SCHEMA) is None
    assert index_buckets(Eq("name", "a"), replace(CONFIG, record_key_fields=("name", "id")), SCHEMA) is None


@pytest.mark.parametrize(
    "foreign",
    [
        replace(CONFIG, bucket_count=0),
        replace(CONFIG, extra={**CONFIG.extra, "hoodie.index.type": "SIMPLE"}),
        replace(CONFIG, extra={**CONFIG.extra, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}),
        replace(CONFIG, extra={**CONFIG.extra, "hoodie.bucket.index.hash.field": "name"}),
        replace(CONFIG, extra={**CONFIG.extra, "hoodie.bucket.index.partition.expressions": "x,4"}),
    ],
)
def test_other_placements_have_no_buckets_of_ours(foreign: TableConfig) -> None:
    found = key_lookup(Eq("id", 1), foreign, SCHEMA)
    assert found is not None
    assert found.buckets(foreign) is None
    assert (buckets := found.buckets(CONFIG)) is not None
    assert buckets.of("") == {int(bucket_ids(pa.array(["1"]), ("id",), 8)[0])}


@given(part=filters(["n"], max_leaves=8), data=rows(["n"], max_size=6))
def test_no_row_passes_without_a_bound_value(part: Filter, data: list[dict[str, object]]) -> None:
    part = normalised(part)
    bound = bound_values(part, "n")
    if bound is not None:
        assert all(row["n"] in bound for row in data if truth(part, row) is True)
