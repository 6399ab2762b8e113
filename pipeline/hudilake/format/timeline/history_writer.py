"""Moves completed instants from the active timeline into the history, Hudi's LSM tree of Parquet files.

Order on storage: the Parquet file, the manifest that names it, ``_version_``; then the instants' files are deleted, the
completed file of each instant last, and commits oldest first. So the active timeline has no gap at any moment: readers
treat an instant that is missing between two active ones as one that never completed. A crash before the deletions
leaves instants in both places; the next archival deletes them without writing them again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.format.timeline.history import (
    EXTRA_ENTRY,
    HISTORY_PATH,
    Extras,
    History,
    HistoryFile,
    manifest_versions,
    newest_extras,
    read_manifest,
)
from hudilake.format.timeline.instant import (
    CLEAN,
    CLUSTERING,
    COMMIT,
    COMPACTION,
    REPLACE_COMMIT,
    WRITE_ACTIONS,
    Instant,
    State,
)
from hudilake.storage.base import Storage, StorageNotFoundError

_PARALLEL = 8
#: Files of a level that become one of the next, and manifests kept for readers of an older one (Hudi's defaults).
_FILES_PER_LEVEL = 10
_MANIFESTS_KEPT = 3

_TEXTS, _BODIES = ("instantTime", "completionTime", "action"), ("metadata", "plan")
_AVRO = {
    "type": "record",
    "name": "HoodieLSMTimelineInstant",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        *({"name": name, "type": ["null", "string"], "default": None} for name in _TEXTS),
        *({"name": name, "type": ["null", "bytes"], "default": None} for name in _BODIES),
        {"name": "version", "type": "int", "default": 1},
    ],
}
_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in _TEXTS),
        *(pa.field(name, pa.binary()) for name in _BODIES),
        pa.field("version", pa.int32(), nullable=False),
    ],
    metadata={"parquet.avro.schema": json.dumps(_AVRO)},
)


def move_to_history(storage: Storage, instants: Sequence[Instant], newest_only: Collection[str] = ()) -> None:
    """Archive completed instants, oldest first; ``storage`` is rooted at their table.

    ``newest_only``: keys of the commits' extra metadata of which the history keeps the newest value, in the footer of a
    file, and no commit its own. Raises CorruptDataError for a history that cannot be read, StorageError: then call
    again.
    """
    writer = _Writer(History.load(storage))
    fresh = writer.without_archived(instants)
    if fresh:
        with ThreadPoolExecutor(_PARALLEL) as pool:
            rows = list(pool.map(lambda instant: _row(storage, instant), fresh))
        commits = [(row["instantTime"], row["completionTime"], row["metadata"]) for row in rows if _has_extra(row)]
        extras = newest_extras(commits)
        for row in filter(_has_extra, rows):
            row["metadata"] = _without(row["metadata"], newest_only)
        writer.add(pa.Table.from_pylist(rows, schema=_SCHEMA), 0, extras)
        writer.merge_levels()
    _delete(storage, instants)


def _delete(storage: Storage, instants: Sequence[Instant]) -> None:
    unfinished = [path for instant in instants for path in _pending_paths(instant)]
    paths = [instant.path for instant in instants if instant.action not in WRITE_ACTIONS]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(storage.delete, unfinished))
        list(pool.map(storage.delete, paths))
    for instant in sorted(i for i in instants if i.action in WRITE_ACTIONS):
        storage.delete(instant.path)


def _pending_paths(instant: Instant) -> list[str]:
    actions = {COMMIT: (COMPACTION, COMMIT), REPLACE_COMMIT: (CLUSTERING, REPLACE_COMMIT)}.get(
        instant.action, (instant.action,)
    )
    states = (State.REQUESTED, State.INFLIGHT)
    return [Instant(instant.requested_time, action, state).path for action in actions for state in states]


def _row(storage: Storage, instant: Instant) -> dict[str, Any]:
    plan_of = {COMMIT: COMPACTION, REPLACE_COMMIT: CLUSTERING, CLEAN: CLEAN}.get(instant.action)
    plan = None
    if plan_of is not None:
        try:
            plan = storage.read(Instant(instant.requested_time, plan_of, State.REQUESTED).path) or None
        except StorageNotFoundError:
            plan = None
    return {
        "instantTime": instant.requested_time,
        "completionTime": instant.completion_time,
        "action": instant.action,
        "metadata": storage.read(instant.path) or None,
        "plan": plan,
        "version": 1,
    }


def _has_extra(row: dict[str, Any]) -> bool:
    return row["action"] in WRITE_ACTIONS and row["metadata"] is not None


def _without(body: bytes, keys: Collection[str]) -> bytes:
    """A commit's body without some keys of its extra metadata."""
    metadata = CommitMetadata.from_bytes(body, HISTORY_PATH) if keys else None
    if metadata is None or not any(key in metadata.extra for key in keys):
        return body
    return replace(metadata, extra={k: v for k, v in metadata.extra.items() if k not in keys}).to_bytes()


class _Writer:
    """The changes to a table's history, each a new manifest."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._storage = history.storage

    def without_archived(self, instants: Sequence[Instant]) -> list[Instant]:
        """The instants that the history lacks; only files whose range of instants overlaps theirs are read."""
        return [i for i in instants if self._history.completion_time(i.requested_time) is None]

    def add(self, rows: pa.Table, level: int, extras: Extras, replaced: Iterable[HistoryFile] = ()) -> None:
        """Write a file of a level and a manifest that names it instead of those it replaces."""
        times = rows.column("instantTime").to_pylist()
        sink = pa.BufferOutputStream()
        rows = rows.sort_by("instantTime").cast(_SCHEMA)
        with pq.ParquetWriter(sink, _SCHEMA, compression="zstd") as writer:
            writer.write_table(rows)
            writer.add_key_value_metadata({EXTRA_ENTRY: json.dumps(extras)})
        data = sink.getvalue().to_pybytes()
        new = HistoryFile.named(f"{min(times)}_{max(times)}_{level}.parquet", len(data))
        self._storage.write(new.path, data)
        replaced_names = {entry.name for entry in replaced} | {new.name}
        self._publish((*(entry for entry in self._history.entries if entry.name not in replaced_names), new))

    def _publish(self, entries: tuple[HistoryFile, ...]) -> None:
        version = self._history.version + 1
        named = [{"fileName": entry.name, "fileLen": entry.size} for entry in entries]
        self._storage.write(f"{HISTORY_PATH}/manifest_{version}", json.dumps({"files": named}, indent=2).encode())
        self._storage.write(f"{HISTORY_PATH}/_version_", str(version).encode())
        self._history = History(self._storage, entries, version)

    def merge_levels(self) -> None:
        """Merge full levels upwards, then delete what no kept manifest names."""
        level = 0
        while len(full := self._level(level)) >= _FILES_PER_LEVEL:
            batch = full[:_FILES_PER_LEVEL]
            extras: Extras = {}
            for entry in batch:
                for key, value in self._history.extras(entry).items():
                    extras[key] = max(value, extras.get(key, value))
            rows = pa.concat_tables([self._history.read(entry).cast(_SCHEMA) for entry in batch])
            self.add(rows, level + 1, extras, replaced=batch)
            level += 1
        if level:
            self._delete_unnamed(_MANIFESTS_KEPT + level)

    def _level(self, level: int) -> list[HistoryFile]:
        return sorted((e for e in self._history.entries if e.level == level), key=lambda e: e.first)

    def _delete_unnamed(self, kept: int) -> None:
        names = [info.path.rpartition("/")[2] for info in self._storage.list(HISTORY_PATH)]
        versions = sorted(manifest_versions(names), reverse=True)
        named = {entry.name for version in versions[:kept] for entry in read_manifest(self._storage, version)}
        doomed = [f"manifest_{version}" for version in versions[kept:]]
        doomed += [name for name in names if HistoryFile.named(name, 0).level >= 0 and name not in named]
        for name in doomed:
            self._storage.delete(f"{HISTORY_PATH}/{name}")
