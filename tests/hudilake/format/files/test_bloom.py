"""Bloom filters: Hudi's bytes, and no key that was added is ever denied."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudilake.errors import LakeError, UnsupportedError
from hudilake.format.files.bloom import DYNAMIC, SIMPLE, BloomFilter, bit_size, hash_count, murmur2
from tests.paths import GOLDEN

VECTORS = json.loads((GOLDEN / "vectors.json").read_text())
BLOOMS: list[dict[str, Any]] = VECTORS["bloom"]


def _empty(vector: dict[str, Any]) -> BloomFilter:
    if vector["type"] == SIMPLE:
        return BloomFilter.simple(vector["num_entries"], vector["fpp"])
    return BloomFilter.dynamic(vector["num_entries"], vector["fpp"], vector["max_entries"])


@pytest.mark.parametrize("seed", [0, 1, -1, 12345])
def test_murmur(seed: int) -> None:
    vectors = VECTORS["murmur"]
    keys = [bytes.fromhex(vector["hex"]) for vector in vectors]
    expected = [vector[str(seed)] for vector in vectors]
    assert murmur2(keys, seed).tolist() == expected
    assert [int(murmur2([key], seed)[0]) for key in keys] == expected


def _slow_murmur(key: bytes, seed: int) -> int:
    """The definition, key by key."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = (seed ^ len(key)) & mask
    for at in range(0, len(key) & ~3, 4):
        k = int.from_bytes(key[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = h * m & mask ^ k
    left = len(key) & 3
    if left:
        for back in range(left, 0, -1):
            byte = key[-back]
            h ^= ((byte - 256 if byte > 127 else byte) << 8 * (back - 1)) & mask
        h = h * m & mask
    h = (h ^ h >> 13) * m & mask
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=50), st.integers(-(2**31), 2**31 - 1))
def test_murmur_of_mixed_lengths(keys: list[bytes], seed: int) -> None:
    assert murmur2(keys, seed).tolist() == [_slow_murmur(key, seed) for key in keys]


@pytest.mark.parametrize("vector", BLOOMS, ids=lambda v: f"{v['type']}-{v['num_entries']}-{len(v['keys'])}")
def test_hudi_bytes(vector: dict[str, Any]) -> None:
    made = _empty(vector)
    made.add(vector["keys"])
    assert made.to_base64() == vector["base64"]
    one_by_one = _empty(vector)
    for key in vector["keys"]:
        one_by_one.add([key])
    assert one_by_one.to_base64() == vector["base64"]


@pytest.mark.parametrize("vector", BLOOMS, ids=lambda v: f"{v['type']}-{v['num_entries']}-{len(v['keys'])}")
def test_reads_hudi_filters(vector: dict[str, Any]) -> None:
    read = BloomFilter.from_base64(vector["type"], vector["base64"])
    assert read.to_base64() == vector["base64"]
    assert read.might_contain(vector["keys"]).all()
    assert all(key in read for key in vector["keys"])
    assert "certainly not inside" not in read


def test_sizes() -> None:
    assert (bit_size(60_000, 1e-9), hash_count(2_587_966, 60_000)) == (2_587_966, 30)
    assert bit_size(100_000, 1e-9) == 4_313_277


def test_dynamic_growth() -> None:
    """Rows of five keys up to twelve; then round robin from row 0 on, as Hudi counts."""
    grown = BloomFilter.dynamic(5, 0.01, 12)
    grown.add([str(n) for n in range(5)])
    assert grown.row_count == 1
    grown.add([str(n) for n in range(5, 15)])
    assert grown.row_count == 3
    before = grown.to_bytes()
    grown.add([str(n) for n in range(15, 40)])
    assert grown.row_count == 3
    assert grown.to_bytes() != before
    assert grown.might_contain([str(n) for n in range(40)]).all()


def test_dynamic_read_back_does_not_grow() -> None:
    grown = BloomFilter.dynamic(5, 0.01, 1000)
    grown.add([str(n) for n in range(5)])
    read = BloomFilter.from_base64(DYNAMIC, grown.to_base64())
    read.add([str(n) for n in range(5, 30)])
    assert read.row_count == 1
    assert read.might_contain([str(n) for n in range(30)]).all()


@given(st.lists(st.text(min_size=1, max_size=20), max_size=80))
def test_no_member_is_denied(keys: list[str]) -> None:
    column = pa.array([*keys, None, ""], pa.string())
    made = BloomFilter.of(pa.chunked_array([column, column.slice(1)]), 1e-3)
    read = BloomFilter.from_base64(SIMPLE, made.to_base64())
    if keys:
        assert made.might_contain(keys).all()
        assert read.might_contain(pa.array(keys)).all()


def test_false_positive_rate() -> None:
    made = BloomFilter.of(pa.array([str(n) for n in range(20_000)]), 0.01)
    strangers = pa.array([f"x{n}" for n in range(20_000)])
    rate = float(np.mean(made.might_contain(strangers)))
    assert 0.005 < rate < 0.02


def test_open_filter_rules_nothing_out() -> None:
    read = BloomFilter.from_base64(SIMPLE, BloomFilter.open().to_base64())
    assert read.might_contain([str(n) for n in range(1000)]).all()


def test_no_rows_and_slices() -> None:
    assert BloomFilter.of(pa.array([], pa.string())).might_contain(["a"]).tolist() == [False]
    keys = pa.array([f"key{n}" for n in range(100)])
    part = BloomFilter.of(keys.slice(10, 20))
    assert part.might_contain(keys.slice(10, 20)).all()
    assert not part.might_contain(keys.slice(40, 50)).any()


@pytest.mark.parametrize("text", ["", "AAAA", "not base64!", BLOOMS[0]["base64"][:20]])
@pytest.mark.parametrize("kind", [SIMPLE, DYNAMIC])
def test_damage(kind: str, text: str) -> None:
    with pytest.raises(LakeError):
        BloomFilter.from_base64(kind, text)


def test_unknown_kinds() -> None:
    with pytest.raises(UnsupportedError):
        BloomFilter.from_base64("RIBBON", BLOOMS[0]["base64"])
    with pytest.raises(LakeError):
        BloomFilter.from_base64(DYNAMIC, BLOOMS[0]["base64"])
