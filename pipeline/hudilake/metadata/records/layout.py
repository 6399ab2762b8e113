"""The layout of the metadata table: partitions, file groups, first instants, properties, index definitions."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Collection, Sequence
from typing import Any
from urllib.parse import unquote

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.definition.keys import KeyScope
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.properties import dump_properties
from hudilake.format.files.log_file import BlockType, Header, encode_block

METADATA_PATH = ".hoodie/metadata"
INDEX_DEFINITIONS_PATH = ".hoodie/.index_defs/index.json"
#: In the metadata table's properties: which of the successive metadata tables of its table it is.
NUMBER_KEY = "binlake.number"
#: Instants of 17 digits of which 14 are zeros; so many successive metadata tables have initial instants that differ.
_INITIAL_INSTANTS = 1000
LAST_INITIAL_INSTANT = f"{_INITIAL_INSTANTS - 1:017d}"
NUMBERS = _INITIAL_INSTANTS // len(MetadataPartition)
INDEX_DEFINITIONS_KEY = "hoodie.table.index.defs.path"
_LEFT_OPTION = "binlake.left"
#: Version 3, a datum of one byte: an empty list.
_EMPTY_DELETES = b"\x00\x00\x00\x03\x00\x00\x00\x01\x00"


_FILE_GROUP = re.compile(r"^([a-z-]+-)(\d{4,})-0$")
_OWNED_GROUP = re.compile(r"^([a-z-]+-)([^-._]*)-(\d{4,})-0$")
#: Characters that Hudi escapes in the name of a data partition (``PartitionPathEncodeUtils.escapeFileName``, measured).
_ESCAPED = frozenset((*map(chr, range(32)), *"\"#%'*-/:=?[\\]^_{\x7f"))


def file_group_id(partition: MetadataPartition, index: int, owner: str | None = None) -> str:
    """The id of a file group: prefix, the data partition that owns it (if file groups are by data partition), four
    digits, ``-0``. Raises UnsupportedError for a partition whose name cannot be in a file id."""
    if owner is None:
        return f"{partition.prefix}{index:04d}-0"
    name = "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in owner)
    if "." in name:
        raise UnsupportedError(
            f"a record index by partition cannot have the partition {owner!r}: no file id may have a dot in it",
            do_next="make the table with index: record_index",
        )
    return f"{partition.prefix}{name}-{index:04d}-0"


def parse_file_group_id(partition: MetadataPartition, file_id: str) -> tuple[str | None, int] | None:
    """The owner and the number of a file group of that partition (``file_group_id``); None for any other id."""
    match = _FILE_GROUP.match(file_id)
    if match is not None and match.group(1) == partition.prefix:
        return None, int(match.group(2))
    if partition is not MetadataPartition.RECORD_INDEX:
        return None
    owned = _OWNED_GROUP.match(file_id)
    if owned is None or owned.group(1) != partition.prefix:
        return None
    return unquote(owned.group(2)), int(owned.group(3))


def initial_instant(partition: MetadataPartition, number: int = 0) -> str:
    """The instant that initialises a partition in the metadata table of that number, before any instant of the data.

    Hudi's readers take an instant that begins with 14 zeros for one that needs none of the data.
    """
    return f"{number * len(MetadataPartition) + list(MetadataPartition).index(partition):017d}"


def metadata_properties(table_name: str, number: int = 0) -> bytes:
    """``hoodie.properties`` of the metadata table, of that number, of a table of that name."""
    name = f"{table_name}_metadata"
    values = {
        "hoodie.table.name": name,
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "9",
        "hoodie.table.initial.version": "9",
        "hoodie.timeline.layout.version": "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
        "hoodie.table.checksum": str(zlib.crc32(f".{name}".encode())),
        **({NUMBER_KEY: str(number)} if number else {}),
    }
    return dump_properties(values, "Properties saved by binlake")


def partition_metadata(partition: MetadataPartition) -> bytes:
    """``.hoodie_partition_metadata`` of a metadata partition, the same in each of successive metadata tables."""
    return dump_properties({"commitTime": initial_instant(partition), "partitionDepth": "1"}, "partition metadata")


def first_log_file(instant: str) -> bytes:
    """The first log file of a file group that an instant makes: one DELETE block without keys."""
    return encode_block(BlockType.DELETE, {Header.INSTANT_TIME: instant}, _EMPTY_DELETES)


def dump_index_definitions(existing: bytes | None, columns: Sequence[str], left: Collection[str] = ()) -> bytes:
    """``index.json`` with column_stats over those columns; other indexes' definitions in it are kept.

    ``left``: columns that were indexed before. Hudi's readers take the indexed columns from this file, and fail on any
    filter without it (measured).
    """
    definitions = _definitions(existing)
    definitions[MetadataPartition.COLUMN_STATS.value] = {
        "indexName": MetadataPartition.COLUMN_STATS.value,
        "indexType": MetadataPartition.COLUMN_STATS.value,
        "indexFunction": MetadataPartition.COLUMN_STATS.value,
        "sourceFields": list(columns),
        "indexOptions": {_LEFT_OPTION: json.dumps(sorted(left))} if left else {},
        "version": "V2",
    }
    return _dumped(definitions)


def with_record_index(existing: bytes | None, scope: KeyScope | None) -> bytes:
    """``index.json`` with the record index, by data partition or not; None for a table without one.

    Hudi Spark writes the same definition (measured).
    """
    definitions = _definitions(existing)
    name = MetadataPartition.RECORD_INDEX.value
    definitions.pop(name, None)
    if scope is not None:
        definitions[name] = {
            "indexName": name,
            "indexType": name,
            "indexFunction": "",
            "sourceFields": [],
            "indexOptions": {"isPartitioned": "true" if scope.by_partition else "false"},
            "version": "V1",
        }
    return _dumped(definitions)


def indexed_fields(data: bytes | None) -> tuple[str, ...] | None:
    """The columns of column_stats in ``index.json``; None if it does not define column_stats."""
    definition = _definitions(data).get(MetadataPartition.COLUMN_STATS.value)
    return None if definition is None else tuple(definition.get("sourceFields") or ())


def left_fields(data: bytes | None) -> set[str]:
    """The columns that were in column_stats before, according to ``index.json``."""
    definition = _definitions(data).get(MetadataPartition.COLUMN_STATS.value) or {}
    return set(json.loads((definition.get("indexOptions") or {}).get(_LEFT_OPTION, "[]")))


def _dumped(definitions: dict[str, Any]) -> bytes:
    return json.dumps({"indexDefinitions": definitions}, indent=2, ensure_ascii=False).encode()


def _definitions(data: bytes | None) -> dict[str, Any]:
    if data is None:
        return {}
    try:
        return dict(json.loads(data).get("indexDefinitions") or {})
    except (ValueError, AttributeError, TypeError) as error:
        raise CorruptDataError(
            f"the index definitions cannot be read: {error}", do_next="run binlake repair", path=INDEX_DEFINITIONS_PATH
        ) from error
