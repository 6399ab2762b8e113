"""Packed filters say what the filters say that they come from."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudilake.format.files.bloom import BloomFilter
from hudilake.format.files.packed_bloom import KeyBytes, PackedBloom

TEXTS = st.text(max_size=11).filter(lambda text: "\x00" not in text)


@given(
    held=st.lists(TEXTS, max_size=30),
    asked=st.lists(TEXTS.filter(bool), min_size=1, max_size=40),
    first=st.integers(0, 9),
)
def test_a_packed_filter_answers_as_the_filter(held: list[str], asked: list[str], first: int) -> None:
    for bloom in (BloomFilter.simple(8, 0.2), BloomFilter.dynamic(4, 0.1, 12)):
        bloom.add(held)
        keys = pa.array(["x", *asked, *filter(None, held)], pa.string())[1:]
        first = min(first, len(keys) - 1)
        answer = PackedBloom.of(bloom).might_contain(KeyBytes.of(keys), first, len(keys))
        assert answer.tolist() == bloom.might_contain(keys[first:]).tolist()


def test_keys_with_signed_tails_and_the_empty_key_are_found() -> None:
    keys = pa.array(["", "é", "éé", "aé", "abcdé", "abcdeéé", "\U0001f600z"], pa.string())
    bloom = BloomFilter.of(keys, 1e-9)
    assert PackedBloom.of(bloom).might_contain(KeyBytes.of(keys), 0, len(keys)).all()
    assert PackedBloom.of(BloomFilter.open()).is_open


@pytest.mark.parametrize("bit", range(0, 60, 7))
def test_a_filter_with_a_bit_cleared_loses_a_key(bit: int) -> None:
    """The control: the comparison above can fail."""
    keys = pa.array([f"k{i}" for i in range(600)], pa.string())
    packed = PackedBloom.of(BloomFilter.simple(1, 0.9))
    assert not packed.might_contain(KeyBytes.of(keys), 0, 600).any()
    full = PackedBloom(64, 3, (np.full(8, 255, dtype=np.uint8),))
    assert full.might_contain(KeyBytes.of(keys), 0, 600).all()
    full.rows[0][bit >> 3] &= ~np.uint8(1 << (bit & 7))
    assert not full.might_contain(KeyBytes.of(keys), 0, 600).all()
