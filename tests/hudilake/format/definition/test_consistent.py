"""Consistent hashing: Hudi's own vectors and files, and what must hold for any splits and merges."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from hudilake.errors import CorruptDataError
from hudilake.format.definition.bucketing import split_by_bucket
from hudilake.format.definition.consistent import (
    MAX_PLACE,
    ConsistentBuckets,
    HashingMetadata,
    Node,
    children_json,
    hash_places,
)
from hudilake.format.definition.xxhash32 import xxhash32
from tests.paths import GOLDEN

VECTORS = json.loads((GOLDEN / "consistent_vectors.json").read_text())
RING = HashingMetadata.from_bytes(VECTORS["ring"]["file"].encode(), "p")


@pytest.mark.parametrize(("key", "fields", "place"), VECTORS["hashes"])
def test_a_key_has_the_place_that_hudi_gives_it(key: str, fields: list[str], place: int) -> None:
    assert hash_places(pa.array([key]), fields).tolist() == [place]
    assert hash_places(pa.array(["a:1,b:2", key, "1", "a:x,y,b:z:"]), fields)[1] == place


@given(st.lists(st.text(max_size=80)), st.integers(0, 3))
def test_texts_of_any_length_hash_as_xxhash_says(texts: list[str], start: int) -> None:
    found = xxhash32(pa.array(texts, pa.string()).slice(start))
    assert found.tolist() == [xxhash.xxh32_intdigest(text.encode()) for text in texts[start:]]


@pytest.mark.parametrize("vector", VECTORS["metadata"])
def test_a_new_partition_has_the_file_that_hudi_writes(vector: dict[str, object]) -> None:
    partition, buckets = vector["partition"], vector["buckets"]
    assert isinstance(partition, str)
    assert isinstance(buckets, int)
    made = HashingMetadata.first(partition, buckets)
    if "file" in vector:
        assert made.to_bytes().decode() == vector["file"]
        assert HashingMetadata.from_bytes(made.to_bytes(), "p") == made
    else:
        last = made.nodes[-1]
        assert [made.nodes[-2].value, last.value, last.file_id_prefix] == vector["last"]
    splits = [made.split(bucket, ("a", "b")) for bucket in range(min(buckets, 6))]
    assert [[both[1].value, both[0].value] for both in splits if both is not None] == vector["splits"]


def test_a_ring_finds_splits_and_merges_as_hudi_does() -> None:
    ring = VECTORS["ring"]
    assert RING.to_bytes().decode() == ring["file"]
    places = np.array([place for place, _ in ring["found"]], dtype=np.int32)
    assert [RING.nodes[n].file_id_prefix for n in RING.buckets(places)] == [name for _, name in ring["found"]]
    for bucket, (_, middle) in enumerate(ring["splits"]):
        halves = RING.split(bucket, ("x", "y"))
        assert (None if halves is None else halves[0].value) == middle
    for ids, children in ring["merges"]:
        numbers = ["abc".index(name[0]) for name in ids]
        found = RING.merged(numbers, "x")
        said = None if found is None else [[n.value, n.tag, n.file_id_prefix is None] for n in found]
        assert said == children
    children = (Node(7, None, "DELETE"), Node(9, "x", "REPLACE"))
    assert children_json(children) == ring["children"]


@given(st.integers(1, 9), st.lists(st.tuples(st.booleans(), st.integers(0, 99), st.integers(2, 4)), max_size=12))
def test_resizes_move_no_key_of_other_nodes(buckets: int, steps: list[tuple[bool, int, int]]) -> None:
    ring = HashingMetadata.first("d=1", buckets)
    places = np.random.default_rng(buckets).integers(0, MAX_PLACE, 300, dtype=np.int32, endpoint=True)
    for number, (splits, chosen, width) in enumerate(steps):
        count = len(ring.nodes)
        at = chosen % count
        old = [(at + n) % count for n in range(1 if splits else min(width, count))]
        children = ring.split(at, (f"l{number}", f"h{number}")) if splits else ring.merged(old, f"m{number}")
        if children is None or len(children) < 2:
            continue
        after = ring.resized(f"{number}", children)
        before_ids = np.array([ring.nodes[n].file_id for n in ring.buckets(places)])
        after_ids = np.array([after.nodes[n].file_id for n in after.buckets(places)])
        moved = np.isin(before_ids, [ring.nodes[n].file_id for n in old])
        new = [child.file_id for child in children if child.tag == "REPLACE"]
        assert np.array_equal(np.isin(after_ids, new), moved)
        assert np.array_equal(after_ids[~moved], before_ids[~moved])
        assert HashingMetadata.from_bytes(after.to_bytes(), "p") == after
        ring = after


def test_partitions_have_rings_of_their_own() -> None:
    first = HashingMetadata.first("d=2", 2)
    children = first.split(0, ("low", "high"))
    assert children is not None
    ring = first.resized("20260101000000000", children)
    buckets = ConsistentBuckets(2, {"d=2": ring})
    keys = pa.array([str(n) for n in range(40)] * 2)
    paths = pa.array(["d=1"] * 40 + ["d=2"] * 40)
    groups = split_by_bucket(buckets, keys, ("id",), paths)
    found: dict[int, str] = {}
    for path, bucket, where in groups:
        name = buckets.file_id("t", path, bucket)
        assert buckets.bucket_of(path, name) == bucket
        found |= dict.fromkeys(groups.order[where].tolist(), name)
    places = hash_places(keys, ("id",))
    assert found == {
        row: next(n for n in buckets.ring(path).nodes if n.value >= places[row]).file_id
        for row, path in enumerate(paths.to_pylist())
    }
    assert (buckets.count("d=1"), buckets.count("d=2")) == (2, 3)
    assert buckets.of("d=1") != buckets.of("d=2")
    assert len({buckets.of("d=1"), buckets.of("d=2"), buckets.of("d=1")}) == 2
    with pytest.raises(ValueError, match="no node"):
        buckets.bucket_of("d=2", first.nodes[0].file_id)


def test_a_broken_file_is_named() -> None:
    whole = HashingMetadata.first("p", 2)
    unnamed = replace(whole, nodes=(Node(1, None),))
    for data in (b"", b"{}", whole.to_bytes()[:-9], unnamed.to_bytes()):
        with pytest.raises(CorruptDataError, match="hashing metadata"):
            HashingMetadata.from_bytes(data, "some/path")
