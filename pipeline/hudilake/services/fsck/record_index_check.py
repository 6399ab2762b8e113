"""Compares the record index with the rows: every key of a file slice is in it at its place, and nothing else is.

A key that is missing is inserted a second time by the next writer; a key in the wrong place is not found by readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import UnsupportedError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.file_group_write import KeyChanges
from hudilake.format.files.view import file_slices
from hudilake.metadata.live_keys import live_keys
from hudilake.metadata.records.layout import METADATA_PATH
from hudilake.metadata.records.reader import MetadataReader
from hudilake.read.index import INDEX_FAILURES
from hudilake.services.fsck.evidence import Evidence
from hudilake.services.fsck.findings import Check, Finding, Repair, Severity
from hudilake.wording import counted

#: So many keys are looked up together.
_KEYS_AT_ONCE = 1_000_000
_PATH = f"{METADATA_PATH}/{MetadataPartition.RECORD_INDEX.value}"


def check_record_index(evidence: Evidence, reader: MetadataReader) -> Iterator[Finding]:
    """Compare the record index with all rows. Reads the key column of every file slice; does nothing without one."""
    if not reader.has(MetadataPartition.RECORD_INDEX):
        return
    from hudilake.metadata.records.record_index import RecordIndexGroups  # needs compiled loops

    groups = reader.groups[MetadataPartition.RECORD_INDEX]
    by_partition = any(group.owner is not None for group in groups)
    try:
        index = RecordIndexGroups(evidence.storage.sub(METADATA_PATH), groups, by_partition, 1, expected=False)
        in_place = rows = 0
        for slices in _batches(evidence):
            keys = pa.chunked_array([change.inserted for change in slices], pa.string())
            paths, ids = _repeated(slices)
            located = index.locate(_whole(keys), paths)
            right = pc.and_(
                pc.fill_null(pc.equal(located.partition_paths, paths), False),
                pc.fill_null(pc.equal(located.file_ids, ids), False),
            )
            yield from _misplaced(slices, located.file_ids, right)
            in_place += pc.sum(right).as_py() or 0
            rows += len(keys)
        known = sum(part.num_rows for part in index.scan())
    except UnsupportedError as error:
        yield Finding(Severity.INFO, Check.INDEX, f"the record index is not checked: {error.what}", _PATH)
        return
    except INDEX_FAILURES as error:
        yield _wrong(f"the record index cannot be read: {getattr(error, 'what', error)}", _PATH)
        return
    if known > in_place:
        yield _wrong(f"the record index has {counted(known - in_place, 'key')} without a row at their place", _PATH)


def _batches(evidence: Evidence) -> Iterator[Sequence[KeyChanges]]:
    storage, timeline, ordering = evidence.storage, evidence.timeline, evidence.config.ordering_field
    batch: list[KeyChanges] = []
    none = pa.array([], pa.string())
    for piece in file_slices(storage, timeline):
        batch.append(
            KeyChanges(piece.partition_path, piece.file_id, live_keys(storage, piece, ordering, timeline), none)
        )
        if sum(len(change.inserted) for change in batch) >= _KEYS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _repeated(slices: Sequence[KeyChanges]) -> tuple[pa.Array, pa.Array]:
    """(partition path, file id) of each key."""
    owners = pa.array(np.repeat(np.arange(len(slices)), [len(change.inserted) for change in slices]))
    paths = pa.array([change.partition_path for change in slices], pa.string())
    ids = pa.array([change.file_id for change in slices], pa.string())
    return paths.take(owners), ids.take(owners)


def _whole(keys: pa.ChunkedArray) -> pa.Array:
    whole = keys.combine_chunks()
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole


def _misplaced(slices: Sequence[KeyChanges], file_ids: pa.Array, right: pa.Array) -> Iterator[Finding]:
    start = 0
    for change in slices:
        size = len(change.inserted)
        wrong = change.inserted.filter(pc.invert(right.slice(start, size)))
        if len(wrong):
            missing = file_ids.slice(start, size).null_count
            what = f"the record index lacks {missing} of the file group's {size} keys"
            if len(wrong) > missing:
                what += f" and has {len(wrong) - missing} of them in another place"
            yield _wrong(f"{what}, for example {wrong[0].as_py()!r}", f"{change.partition_path}/{change.file_id}")
        start += size


def _wrong(what: str, path: str) -> Finding:
    return Finding(Severity.ERROR, Check.INDEX, what, path, repair=Repair.REBUILD_INDEX)
