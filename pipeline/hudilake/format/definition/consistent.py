"""Consistent hashing: the nodes of a partition's hash ring, each a file group; nodes are split and merged one by one.

The rules and the files are Hudi's (``HoodieConsistentHashingMetadata``, ``ConsistentBucketIdentifier``, version 1.2.0).
A record key's place on the ring is the xxHash of its values, joined without a separator. Vectors in
``tests/data/golden/consistent_vectors.json``, made by Hudi's classes.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from hudilake.errors import CorruptDataError
from hudilake.format.definition.bucket import joined_key_values
from hudilake.format.definition.java_hash import Int32s

#: The greatest place on the ring.
MAX_PLACE: Final = 0x7FFFFFFF
#: The instant of a partition's first metadata, and of a first ``.hashing_config`` file.
FIRST_INSTANT: Final = "00000000000000"
#: The folder of the metadata, relative to the table's root; a folder a partition path.
HASHING_PATH: Final = ".hoodie/.bucket_index/consistent_hashing_metadata"
#: Ends the name of a metadata file, and of the empty file that says that its resize has completed.
META_SUFFIX: Final = ".hashing_meta"
COMMIT_SUFFIX: Final = ".commit"
#: Ends the id of a node's file group: a node has one file group.
_SUFFIX: Final = "-0"

Tag: TypeAlias = Literal["NORMAL", "REPLACE", "DELETE"]
_TAGS: Mapping[str, Tag] = {"NORMAL": "NORMAL", "REPLACE": "REPLACE", "DELETE": "DELETE"}


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the ring.

    Args:
        value: its place; it holds the keys from after the node before it up to its own place.
        file_id_prefix: of its file group, a UUID; None for a node that is deleted.
        tag: NORMAL in stored metadata; REPLACE or DELETE for a child in a plan.
    """

    value: int
    file_id_prefix: str | None
    tag: Tag = "NORMAL"

    @property
    def file_id(self) -> str:
        """The id of its file group."""
        return f"{self.file_id_prefix}{_SUFFIX}"


@dataclass(frozen=True, slots=True)
class HashingMetadata:
    """The content of a ``.hashing_meta`` file.

    Args:
        partition_path: of the partition.
        instant: of the resize that made it, or FIRST_INSTANT.
        num_buckets: the partition's first number of nodes; a resize does not change it.
        seq_no: the number of resizes so far.
        nodes: by place, ascending.
        version: of the file.
    """

    partition_path: str
    instant: str
    num_buckets: int
    seq_no: int
    nodes: tuple[Node, ...]
    version: int = 0

    @classmethod
    def first(cls, partition_path: str, buckets: int) -> HashingMetadata:
        """The metadata of a new partition; every writer makes the same."""
        return _first(partition_path, buckets)

    def to_bytes(self) -> bytes:
        """The file, byte for byte as Hudi writes it."""
        head = {
            "version": self.version,
            "partitionPath": self.partition_path,
            "instant": self.instant,
            "numBuckets": self.num_buckets,
            "seqNo": self.seq_no,
        }
        lines = [f'  "{name}" : {json.dumps(value, ensure_ascii=False)},\n' for name, value in head.items()]
        return f'{{\n{"".join(lines)}  "nodes" : {_nodes_json(self.nodes, "  ")}\n}}'.encode()

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> HashingMetadata:
        """Read a file. Raises CorruptDataError."""
        try:
            values = json.loads(data)
            nodes = sorted(map(_node, values["nodes"]), key=lambda node: node.value)
            metadata = cls(
                partition_path=str(values["partitionPath"]),
                instant=str(values["instant"]),
                num_buckets=int(values["numBuckets"]),
                seq_no=int(values["seqNo"]),
                nodes=tuple(nodes),
                version=int(values["version"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise _unreadable(path, f"{type(error).__name__}: {error}") from error
        if not nodes or any(node.tag != "NORMAL" or node.file_id_prefix is None for node in nodes):
            raise _unreadable(path, "a node has no file group")
        return metadata

    def resized(self, instant: str, children: Sequence[Node]) -> HashingMetadata:
        """The metadata after a resize: the children take the places of nodes, or remove them."""
        ring = {node.value: node for node in self.nodes}
        for child in children:
            if child.tag == "DELETE":
                ring.pop(child.value)
            else:
                ring[child.value] = replace(child, tag="NORMAL")
        nodes = tuple(ring[value] for value in sorted(ring))
        return replace(self, instant=instant, seq_no=self.seq_no + 1, nodes=nodes)

    def split(self, bucket: int, prefixes: tuple[str, str]) -> tuple[Node, Node] | None:
        """The children of a node that is split in the middle of its range; None if its range is one place.

        Args:
            bucket: the number of the node.
            prefixes: of the new file ids, the lower half first.
        """
        value, before = self.nodes[bucket].value, self.nodes[bucket - 1].value
        total = before + value + (0 if before < value else MAX_PLACE + 1)
        middle = (total >> 1) & MAX_PLACE
        if middle in (before, value):
            return None
        return Node(middle, prefixes[0], "REPLACE"), Node(value, prefixes[1], "REPLACE")

    def merged(self, buckets: Sequence[int], prefix: str) -> tuple[Node, ...] | None:
        """The children of at least two neighbouring nodes that become one, at the last one's place; None if they are no
        neighbours in this order. The first node follows the last one.

        Args:
            buckets: the numbers of the nodes, in the ring's order.
            prefix: of the new file id.
        """
        count = len(self.nodes)
        if any((first + 1) % count != second for first, second in pairwise(buckets)):
            return None
        gone = tuple(Node(self.nodes[bucket].value, None, "DELETE") for bucket in buckets[:-1])
        return (*gone, Node(self.nodes[buckets[-1]].value, prefix, "REPLACE"))

    def buckets(self, places: Int32s) -> Int32s:
        """The number of the node of each of n places: the first node at or after it, else the first of all."""
        indexes = np.searchsorted(np.array([node.value for node in self.nodes], dtype=np.int32), places)
        indexes[indexes == len(self.nodes)] = 0
        return indexes.astype(np.int32)


@dataclass(frozen=True)
class ConsistentBuckets:
    """The buckets of a table with consistent hashing (see ``bucketing.Bucketing``): the nodes of each partition's ring.

    Args:
        number: of nodes in a new partition.
        partitions: the metadata of partitions that differ from that of a new partition.
    """

    number: int
    partitions: Mapping[str, HashingMetadata] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.number, *sorted(self.partitions)))

    def ring(self, partition_path: str) -> HashingMetadata:
        """The metadata of a partition."""
        known = self.partitions.get(partition_path)
        return known if known is not None else HashingMetadata.first(partition_path, self.number)

    def buckets(self, record_keys: pa.Array, key_fields: Sequence[str], partition_paths: pa.DictionaryArray) -> Int32s:
        """Returns the bucket of each of n rows, int32: the index of its node on the ring of its partition."""
        places = hash_places(record_keys, key_fields)
        paths, codes = partition_paths.dictionary.to_pylist(), partition_paths.indices.to_numpy()
        if len(paths) == 1:
            return self.ring(paths[0]).buckets(places)
        numbers = np.empty(len(record_keys), dtype=np.int32)
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(paths) + 1))
        for number, path in enumerate(paths):
            rows = order[bounds[number] : bounds[number + 1]]
            numbers[rows] = self.ring(path).buckets(places[rows])
        return numbers

    def of(self, partition_path: str) -> ConsistentBuckets:
        """Returns the buckets of one partition, with its ring alone."""
        return ConsistentBuckets(self.number, {partition_path: self.ring(partition_path)})

    def count(self, partition_path: str) -> int:
        """Returns the number of nodes of the partition's ring."""
        known = self.partitions.get(partition_path)
        return self.number if known is None else len(known.nodes)

    def file_id(self, table_name: str, partition_path: str, bucket: int) -> str:
        """Returns the file id of the node that the bucket stands for."""
        return self.ring(partition_path).nodes[bucket].file_id

    def bucket_of(self, partition_path: str, file_id: str) -> int:
        """Returns the index of the node with this file id. Raises ValueError if the ring has no such node."""
        for bucket, node in enumerate(self.ring(partition_path).nodes):
            if node.file_id == file_id:
                return bucket
        raise ValueError(f"file group {file_id} is no node of the hash ring of partition {partition_path!r}")


def hash_places(record_keys: pa.Array, key_fields: Sequence[str]) -> Int32s:
    """The place on the ring of each of n record keys, int32, at least 0. Arguments as ``bucket_ids``."""
    from hudilake.format.definition.xxhash32 import xxhash32  # needs compiled loops, seconds to import

    hashes = xxhash32(joined_key_values(record_keys, key_fields))
    return (hashes & np.uint32(MAX_PLACE)).astype(np.int32)


def hashing_file(partition_path: str, instant: str, suffix: str = META_SUFFIX) -> str:
    """The path of a partition's metadata file, or of the file that says that it counts (COMMIT_SUFFIX)."""
    folder = f"{HASHING_PATH}/{partition_path}" if partition_path else HASHING_PATH
    return f"{folder}/{instant}{suffix}"


def children_json(nodes: Sequence[Node]) -> str:
    """The children of a resize as a clustering plan holds them."""
    return _nodes_json(nodes, "")


@lru_cache(maxsize=4096)
def _first(partition_path: str, buckets: int) -> HashingMetadata:
    step = (MAX_PLACE + buckets - 1) // buckets
    ends = [min(step * number, MAX_PLACE) for number in range(buckets + 1)]
    nodes = tuple(Node(end, _first_prefix(partition_path, start, end)) for start, end in pairwise(ends))
    return HashingMetadata(partition_path, FIRST_INSTANT, buckets, 0, nodes)


def _first_prefix(partition_path: str, start: int, end: int) -> str:
    """Java's ``UUID.nameUUIDFromBytes`` of the range and the partition path."""
    name = start.to_bytes(8, "big") + end.to_bytes(8, "big") + partition_path.encode()
    return str(uuid.UUID(bytes=hashlib.md5(name, usedforsecurity=False).digest(), version=3))


def _nodes_json(nodes: Sequence[Node], indent: str) -> str:
    """A list of nodes as Jackson's pretty printer writes it."""
    return f"[ {', '.join(_node_json(node, indent) for node in nodes)} ]"


def _node_json(node: Node, indent: str) -> str:
    values = {"value": node.value, "fileIdPrefix": node.file_id_prefix, "tag": node.tag}
    lines = [f'{indent}  "{name}" : {json.dumps(value)}' for name, value in values.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _node(values: Mapping[str, Any]) -> Node:
    prefix = values["fileIdPrefix"]
    return Node(int(values["value"]), None if prefix is None else str(prefix), _TAGS[values["tag"]])


def _unreadable(path: str, why: str) -> CorruptDataError:
    return CorruptDataError(
        f"hashing metadata cannot be read ({why})",
        do_next="restore the file from a copy, or rebuild the table under a new path",
        path=path,
    )
