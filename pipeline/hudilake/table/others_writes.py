"""What other writers have put into the file groups of buckets, checked before a commit of ours builds on it.

A writer that does not know the bucket index puts a new key into any file group (measured: hudi-rs 0.6.0-rc.1 fills
those of a copy-on-write table), and so does one that counts other buckets. An upsert of ours would not find the key
there, and insert it again. A writer without the table's lock writes a base file anew from one that has been replaced
meanwhile, so that the rows of one of the two commits are lost.

Commits of binlake say what their files hold: files of such commits are not read again. Those of others are read once,
their record keys alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from hudilake.errors import ConfigError
from hudilake.format.definition.bucketing import buckets_of
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.key_change import keyed_since, says_key
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.base_file import open_base_file
from hudilake.format.files.data_block import decode_data_block
from hudilake.format.files.log_file import BlockType, iter_blocks
from hudilake.format.files.names import parse_log_name
from hudilake.format.timeline.commit_metadata import CLUSTER, CommitMetadata, WriteStat
from hudilake.format.timeline.instant import COMMIT, Instant
from hudilake.format.timeline.timeline import LOOKBACK_MS, Timeline, earlier
from hudilake.storage.base import Storage, StorageNotFoundError

_OURS = "binlake."
_DO_NEXT = "stop that writer; restore the table to before its commit, or load it again under a new path"
_ROWS = (BlockType.PARQUET_DATA, BlockType.AVRO_DATA)


class OthersWrites:
    """Which writes of a table's timeline a writer has checked; all from before the newest one of binlake count as
    checked."""

    def __init__(self) -> None:
        self._checked: set[str] | None = None

    def check(self, storage: Storage, config: TableConfig, timeline: Timeline) -> None:
        """Check the writes that have completed since the last call, as of the timeline's last refresh.

        Args:
            storage: the table's root.
            config: of the table.
            timeline: the table's.

        Raises ConfigError for rows that are not in their bucket, and for a base file that was written anew from another
        than the newest one; again on each call, while the write is in the timeline. Raises CorruptDataError,
        UnsupportedError, StorageError for a file that cannot be read.
        """
        gone = set()
        for write in self._unchecked(timeline):
            if (body := _body(timeline, write)) is None:
                gone.add(write.requested_time)
            elif not (_is_ours(body) or _moves(body)):
                if write.action == COMMIT:  # of rows: that of a copy-on-write table
                    _check_chain(config, timeline, write, body)
                for stat in body.stats:
                    _check_keys(storage, config, write, stat)
        self._checked = {write.requested_time for write in timeline.completed()} - gone

    def _unchecked(self, timeline: Timeline) -> list[Instant]:
        if (checked := self._checked) is not None:
            return [write for write in timeline.completed() if write.requested_time not in checked]
        newest_first = timeline.newest_first()
        newest = next((write for write in newest_first if _is_change_of_ours(_body(timeline, write))), None)
        if newest is None:
            return newest_first
        since = earlier(newest.requested_time, LOOKBACK_MS)  # clocks of writers may be apart
        return [write for write in newest_first if write is not newest and (write.completion_time or "") > since]


def strays(config: TableConfig, partition_path: str, bucket: int | None, keys: pa.Array | pa.ChunkedArray) -> int:
    """How many of n record keys belong to another bucket; 0 for no bucket, and for a table whose properties do not name
    the key."""
    if bucket is None or not says_key(config) or not len(keys) or keys.null_count:
        return 0
    return int(np.count_nonzero(buckets_of(config.bucketing, keys, config.hash_fields, partition_path) != bucket))


def _body(timeline: Timeline, write: Instant) -> CommitMetadata | None:
    """The body of a write; None for one that a restore has just taken back."""
    try:
        return timeline.commit_metadata(write)
    except StorageNotFoundError:
        return None


def _is_change_of_ours(body: CommitMetadata | None) -> bool:
    return body is not None and _is_ours(body) and not _moves(body)


def _is_ours(body: CommitMetadata) -> bool:
    return any(stat.contents is not None for stat in body.stats) or any(key.startswith(_OURS) for key in body.extra)


def _moves(body: CommitMetadata) -> bool:
    """Whether a write only lays out anew what others have written: it may be newer than what is to be checked."""
    return body.compacted or body.operation == CLUSTER


def _check_keys(storage: Storage, config: TableConfig, write: Instant, stat: WriteStat) -> None:
    bucket = config.kind.placement.bucket_of(config.bucketing, stat.partition_path, stat.file_id)
    if bucket is None or not stat.path or write.requested_time < keyed_since(config):
        return
    try:
        for keys in _keys_of(storage, stat):
            if count := strays(config, stat.partition_path, bucket, keys):
                raise ConfigError(
                    f"another writer put {count} of {len(keys)} rows into a file group that is not their bucket's",
                    do_next=_DO_NEXT,
                    table=config.name,
                    instant=write.requested_time,
                    path=stat.path,
                )
    except StorageNotFoundError:
        return  # a newer file has its rows, and was written by us or is checked too


def _keys_of(storage: Storage, stat: WriteStat) -> Iterator[pa.ChunkedArray]:
    if parse_log_name(stat.file_name) is None:
        with open_base_file(storage, stat.path, [RECORD_KEY_FIELD], stat.file_size) as rows:
            for group in rows.row_groups():
                yield group.column(RECORD_KEY_FIELD)
        return
    for block in iter_blocks(storage.read(stat.path), stat.path):
        if block.block_type in _ROWS:
            yield decode_data_block(block, [RECORD_KEY_FIELD], stat.path).column(RECORD_KEY_FIELD)


def _check_chain(config: TableConfig, timeline: Timeline, write: Instant, body: CommitMetadata) -> None:
    """Raise ConfigError if a base file of a write lacks the rows of another write, or the other way round: readers take
    the file that was requested last."""
    based = {(stat.partition_path, stat.file_id): stat.prev_commit for stat in body.stats}
    least = min(based.values(), default="")
    for other in timeline.completed():
        if other.requested_time <= least or other.identity == write.identity:
            continue
        made = _body(timeline, other)
        for stat in made.stats if made is not None else ():
            known = based.get((stat.partition_path, stat.file_id))
            if known is None or "null" in (known, stat.prev_commit):
                continue
            first, second = sorted((other.requested_time, write.requested_time))
            if (stat.prev_commit if second == other.requested_time else known) < first:
                raise ConfigError(
                    "another writer committed without the table's lock: a base file was written anew from one that had"
                    f" been replaced, so the rows of commit {first} in its file group are lost",
                    do_next=_DO_NEXT,
                    table=config.name,
                    instant=second,
                    path=stat.path if second == other.requested_time else None,
                    file_group=stat.file_id,
                )
