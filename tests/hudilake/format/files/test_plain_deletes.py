"""Delete blocks decoded in columns give what the Avro decoder gives, and leave to it what they do not know."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.errors import CorruptDataError
from hudilake.format.files.delete_block import _by_record, decode_deletes, encode_deletes
from hudilake.format.files.plain_deletes import decode_plain
from tests.hypothesis_profile import scaled

KEYS = st.one_of(st.text(max_size=5), st.text("aé", min_size=60, max_size=70), st.just("x" * 4095))
ORDERS = st.one_of(st.integers(-3, 3), st.sampled_from([2**63 - 1, -(2**63), 2**40]))
DELETES = st.lists(st.tuples(KEYS, ORDERS), min_size=1, max_size=30)
PARTITIONS = st.sampled_from(["", "day=d1", "p" * 200])


def datum(deletes: list[tuple[str, int]], partition: str, ordered: bool) -> bytes:
    """A block's Avro datum."""
    keys, orders = pa.array([k for k, _ in deletes]), pa.array([o for _, o in deletes], pa.int64())
    return encode_deletes(keys, orders if ordered else None, partition)[8:]


@given(deletes=DELETES, partition=PARTITIONS, ordered=st.booleans())
def test_as_the_avro_decoder(deletes: list[tuple[str, int]], partition: str, ordered: bool) -> None:
    encoded = datum(deletes, partition, ordered)
    found = decode_plain(encoded)
    assert found is not None
    assert found == _by_record(encoded)
    assert found[0].to_pylist() == [k for k, _ in deletes]
    assert found[1].to_pylist() == [o if ordered else None for _, o in deletes]


def test_many_records_across_stretches() -> None:
    deletes = [(f"key{n}", n * 1_000_003) for n in range(40_000)]
    found = decode_plain(datum(deletes, "day=d1", True))
    assert found is not None
    assert found[0].to_pylist() == [k for k, _ in deletes]
    assert found[1].to_pylist() == [o for _, o in deletes]


@settings(max_examples=scaled(500))
@given(deletes=DELETES, at=st.integers(0, 10_000), byte=st.integers(0, 255), cut=st.booleans())
def test_damaged_bytes_are_read_as_the_avro_decoder_reads_them(
    deletes: list[tuple[str, int]], at: int, byte: int, cut: bool
) -> None:
    encoded = bytearray(datum(deletes, "day=d1", True))
    at %= len(encoded)
    encoded[at] = byte
    damaged = bytes(encoded[: at + 1] if cut else encoded)
    found = decode_plain(damaged)
    if found is not None:
        assert found == _by_record(damaged)


def test_what_is_left_to_the_avro_decoder() -> None:
    """Keys of 8 KB, two partition paths in one block, an empty block, a datum cut short."""
    assert decode_plain(datum([("x" * 9000, 1)], "", True)) is None
    two = datum([("a", 1)], "p", True)[:-1] + datum([("b", 1)], "q", True)[1:]
    mixed = b"\x04" + two[1:]
    assert decode_plain(mixed) is None
    assert [k.as_py() for k in _by_record(mixed)[0]] == ["a", "b"]
    assert decode_plain(b"\x00") is None
    whole = encode_deletes(pa.array(["a"]), pa.array([1]), "")
    assert decode_deletes(whole).num_rows == 1
    with pytest.raises(CorruptDataError, match="delete block cannot be read"):
        decode_deletes(whole[:-4])
