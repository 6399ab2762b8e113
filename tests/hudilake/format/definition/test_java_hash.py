"""Java's ``String.hashCode`` over columns: Hudi's vectors, and a plain loop over UTF-16 code units."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudilake.format.definition.java_hash import java_string_hash
from tests.paths import GOLDEN

VECTORS = json.loads((GOLDEN / "vectors.json").read_text())["java_string_hash"]

TEXTS = st.one_of(st.text(max_size=12), st.text(st.sampled_from("a0:,é日😀\U0010ffff\x00\x7f\x80￿"), max_size=12))
NULLABLE = st.lists(st.none() | TEXTS, max_size=30)


def hash_code(text: str | None) -> int:
    """As Java's documentation defines it; 0 for null, as ``Objects.hashCode`` does."""
    total = 0
    units = (text or "").encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        total = (31 * total + (high << 8 | low)) & 0xFFFFFFFF
    return total - (1 << 32) if total >= 1 << 31 else total


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: ascii(v["s"]))
def test_vectors_of_hudi(vector: dict[str, object]) -> None:
    assert java_string_hash(pa.array([vector["s"]])).tolist() == [vector["h"]]
    assert hash_code(str(vector["s"])) == vector["h"]


@given(NULLABLE)
def test_equals_the_loop(texts: list[str | None]) -> None:
    hashes = java_string_hash(pa.array(texts, pa.string()))
    assert hashes.dtype == np.int32
    assert hashes.tolist() == [hash_code(t) for t in texts]


@given(NULLABLE, st.integers(0, 30), st.integers(0, 30))
def test_slices_hash_as_their_own_strings(texts: list[str | None], start: int, length: int) -> None:
    array = pa.array(texts, pa.string()).slice(min(start, len(texts)), length)
    assert java_string_hash(array).tolist() == [hash_code(t) for t in texts[start : start + length]]


@given(st.lists(NULLABLE, max_size=4))
def test_chunked_columns(chunks: list[list[str | None]]) -> None:
    column = pa.chunked_array([pa.array(c, pa.string()) for c in chunks], pa.string())
    assert java_string_hash(column).tolist() == [hash_code(t) for c in chunks for t in c]


@given(NULLABLE)
def test_large_strings(texts: list[str | None]) -> None:
    assert java_string_hash(pa.array(texts, pa.large_string())).tolist() == [hash_code(t) for t in texts]


def test_columns_longer_than_one_running_sum() -> None:
    texts = [f"key-{i:07d}" for i in range(60_000)]  # 660,000 code units
    texts[30_000] = "x" * 300_000  # and one string longer than a running sum
    assert java_string_hash(pa.array(texts)).tolist() == [hash_code(t) for t in texts]


def test_non_ascii_among_many() -> None:
    texts = [f"kéy {i}" if i % 3 else f"key {i}" for i in range(10_000)]
    assert java_string_hash(pa.array(texts)).tolist() == [hash_code(t) for t in texts]


def test_of_nothing() -> None:
    assert java_string_hash(pa.array([], pa.string())).tolist() == []
    assert java_string_hash(pa.array([None, "", None], pa.string())).tolist() == [0, 0, 0]
