"""Merges the records of one key, as Hudi's ``HoodieMetadataPayload`` does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from hudilake.errors import CorruptDataError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.column_stats import widen
from hudilake.metadata.records.keys import ALL_PARTITIONS
from hudilake.metadata.records.record_reader import Record, decode_record
from hudilake.metadata.records.records import (
    BloomRecord,
    Listing,
    RecordType,
    StatsRecord,
    encode_bloom,
    encode_listing,
    encode_stats,
)

_ALL_PARTITIONS_KEY = ALL_PARTITIONS.encode()


def record_type(partition: MetadataPartition, key: bytes) -> RecordType:
    """The type of the record that a key of a partition has."""
    if partition is MetadataPartition.FILES:
        return RecordType.ALL_PARTITIONS if key == _ALL_PARTITIONS_KEY else RecordType.FILES
    return RecordType[partition.name]


def encode_record(kind: RecordType, record: Record) -> bytes:
    """A record's bytes under the current schema."""
    if isinstance(record, StatsRecord):
        return encode_stats(kind, record)
    if isinstance(record, BloomRecord):
        return encode_bloom(record)
    return encode_listing(kind, record)


def merge_listings(older: Listing, newer: Listing) -> dict[str, int | None]:
    """The union; a tombstone removes the file of its name, else it stays; of two sizes the larger is used."""
    merged = dict(older)
    for name, size in newer.items():
        if name not in merged:
            merged[name] = size
        elif size is not None:
            merged[name] = max(size, merged[name] or 0)
        elif merged[name] is not None:
            del merged[name]
    return merged


def merge_stats(older: StatsRecord, newer: StatsRecord) -> StatsRecord:
    """The newer record if either is a tombstone or the newer is tight, else the range that holds both."""
    if newer.deleted or older.deleted or newer.tight:
        return newer
    whole = widen(older.range, newer.range)
    if whole is None:
        raise CorruptDataError(
            "two statistics of one key have types that cannot be compared",
            do_next="run binlake repair",
            column=newer.range.column,
        )
    return StatsRecord(newer.name, whole)


def _merge(older: Record, newer: Record) -> Record:
    if isinstance(older, StatsRecord) and isinstance(newer, StatsRecord):
        return merge_stats(older, newer)
    if isinstance(older, dict) and isinstance(newer, dict):
        return merge_listings(older, newer)
    raise CorruptDataError("two records of one key have different types", do_next="run binlake repair")


def merge_values(partition: MetadataPartition, key: bytes, values: Sequence[bytes | None]) -> bytes | None:
    """The merged record of a key's records, oldest first; None if the last one is a deletion.

    All of the current schema. Raises CorruptDataError.
    """
    if values[-1] is None or len(values) == 1 or partition is MetadataPartition.BLOOM_FILTERS:
        return values[-1]
    since = len(values) - values[::-1].index(None) if None in values else 0
    remaining = [value for value in values[since:] if value is not None]
    if len(remaining) == 1:
        return remaining[0]
    return encode_record(record_type(partition, key), reduce(_merge, map(decode_record, remaining)))
