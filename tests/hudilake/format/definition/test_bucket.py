"""Bucket ids and file ids: Hudi's vectors, an oracle for its key parser, and its parser itself."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudilake.format.definition.bucket import bucket_ids, bucket_of_file_id, file_id, key_values
from hudilake.format.definition.keys import record_keys
from tests.hudilake.format.definition.test_java_hash import hash_code
from tests.paths import GOLDEN

VECTORS = json.loads((GOLDEN / "vectors.json").read_text())

#: Texts that make a parser stumble: separators, the field names themselves, Hudi's words for null and empty.
PIECES = st.sampled_from(
    ["a", "b", "ab", "a:", ",b:", ",", ":", ",,", "::", "1", "x", "é", "😀", "__null__", "__empty__", ""]
)
KEYS = st.lists(PIECES, max_size=7).map("".join)


def oracle_values(key: str, fields: list[str]) -> list[str | None]:
    """The rule as told: without comma or colon the key is one value; else it is cut at each comma that begins a
    ``name:``, and the values of known names count."""
    if "," not in key or ":" not in key:
        return [key]
    name, _, rest = key.partition(":")
    pieces = re.split(r",(?=[^,:]*:)", rest)
    pairs = [(name, pieces[0]), *((p.partition(":")[0], p.partition(":")[2]) for p in pieces[1:])]
    values = [{"__null__": None, "__empty__": ""}.get(v, v) for n, v in pairs if n in fields]
    return values or [key]


def oracle_bucket(key: str, fields: list[str], buckets: int) -> int:
    """``List.hashCode`` of the values, without its sign, modulo the bucket count."""
    total = 1
    for value in oracle_values(key, fields):
        total = (31 * total + hash_code(value)) & 0xFFFFFFFF
    return (total & 0x7FFFFFFF) % buckets


@pytest.mark.parametrize("vector", VECTORS["bucket"], ids=lambda v: ascii(v["record_key"]))
def test_vectors_of_hudi(vector: dict[str, Any]) -> None:
    fields = vector["index_fields"].split(",")
    counts = [int(name) for name in vector if name.isdigit()]
    assert counts
    for buckets in counts:
        keys = pa.array([vector["record_key"]])
        assert bucket_ids(keys, fields, buckets).tolist() == [vector[str(buckets)]]
        assert oracle_bucket(vector["record_key"], fields, buckets) == vector[str(buckets)]


@given(KEYS, st.sampled_from([["a", "b"], ["a"], ["b", "a"], ["zz"]]))
def test_key_values_follow_the_rule(key: str, fields: list[str]) -> None:
    assert key_values(key, fields) == oracle_values(key, fields)


@given(st.lists(KEYS, max_size=20), st.sampled_from([["a", "b"], ["a"], ["x", "a", "b"]]), st.integers(1, 300))
def test_buckets_of_any_keys(keys: list[str], fields: list[str], buckets: int) -> None:
    found = bucket_ids(pa.array(keys, pa.string()), fields, buckets)
    assert found.tolist() == [oracle_bucket(k, fields, buckets) for k in keys]


@given(
    st.lists(st.tuples(st.none() | st.text(max_size=5), st.none() | st.integers()), max_size=20), st.integers(1, 300)
)
def test_buckets_of_composite_keys(rows: list[tuple[str | None, int | None]], buckets: int) -> None:
    rows = [(t, None if n is None else n % 1000) for t, n in rows]
    table = pa.table(
        {"a": pa.array([t for t, _ in rows], pa.string()), "b": pa.array([n for _, n in rows], pa.int64())}
    )
    keys = record_keys(table, ["a", "b"])
    found = bucket_ids(keys, ["a", "b"], buckets)
    assert found.tolist() == [oracle_bucket(k, ["a", "b"], buckets) for k in keys.to_pylist()]


def test_plain_composite_keys_in_bulk_equal_the_slow_way() -> None:
    table = pa.table({"a": [f"k{i}" for i in range(5000)], "b": pa.array(range(5000), pa.int64())})
    keys = record_keys(table, ["a", "b"])
    expected = [oracle_bucket(k, ["a", "b"], 64) for k in keys.to_pylist()]
    assert bucket_ids(keys, ["a", "b"], 64).tolist() == expected
    odd = pa.concat_arrays([keys, pa.array(["a:x,y,b:2"])])  # one odd key sends all of them the slow way
    assert bucket_ids(odd, ["a", "b"], 64).tolist() == [*expected, oracle_bucket("a:x,y,b:2", ["a", "b"], 64)]


def test_a_single_field_key_is_hashed_whole() -> None:
    keys = pa.array(["a:1,b:2", "id:11", "x,y"])
    assert key_values("id:11", ["id"]) == ["id:11"]
    assert key_values("x,y", ["id"]) == ["x,y"]
    assert bucket_ids(keys, ["id"], 1 << 20).tolist() == [oracle_bucket(k, ["id"], 1 << 20) for k in keys.to_pylist()]


def test_chunked_and_sliced_keys() -> None:
    keys = pa.array([str(i) for i in range(100)])
    expected = [oracle_bucket(str(i), ["id"], 8) for i in range(100)]
    chunked = pa.chunked_array([keys.slice(0, 30), keys.slice(30)])
    assert bucket_ids(chunked, ["id"], 8).tolist() == expected
    assert bucket_ids(keys.slice(40, 20), ["id"], 8).tolist() == expected[40:60]
    assert bucket_ids(pa.array([], pa.string()), ["id"], 8).tolist() == []


@pytest.mark.parametrize("vector", VECTORS["bucket_fileid"], ids=lambda v: str(v["bucket"]))
def test_the_bucket_in_a_file_id(vector: dict[str, Any]) -> None:
    for form in ("fixed", "random_example", "nbcc"):
        assert bucket_of_file_id(vector[form]) == vector["bucket"]
    made = file_id("t", "p", vector["bucket"])
    assert made[:8] == vector["fixed"][:8]
    assert bucket_of_file_id(made) == vector["bucket"]


def test_file_ids_have_the_shape_of_hudis_and_never_change() -> None:
    assert re.fullmatch(
        r"\d{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-0", file_id("orders", "day=2024-02-29", 3)
    )
    # written into tables: another digest would start second file groups for the same buckets
    assert file_id("orders", "day=2024-02-29", 3) == "00000003-3b84-d7b6-ec29-2dc7ac386852-0"


def test_file_ids_differ_by_table_partition_and_bucket() -> None:
    ids = {file_id(t, p, b) for t in ("t", "u") for p in ("", "p=1", "p=2") for b in range(20)}
    assert len(ids) == 2 * 3 * 20


def test_a_file_id_of_another_index_has_no_bucket() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        bucket_of_file_id("e4c844d2-96f3-1148-117e-6880aabbccdd-0")
