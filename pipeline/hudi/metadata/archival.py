"""Archival: old instants move from the active timeline into ``timeline/history``, an LSM tree of Parquet files.

Order on storage: the Parquet file, the manifest that names it, ``_version_``, then the instants' files are deleted. A
crash before the deletions leaves instants in both places; the next archival deletes them without writing them again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.hudi.metadata.cleaning import oldest_kept_compaction
from pipeline.hudi.metadata.table import MetadataTable
from pipeline.hudi.timeline.history import HISTORY_PATH
from pipeline.hudi.timeline.instant import CLEAN, COMMIT, COMPACTION, DELTA_COMMIT, ROLLBACK, Instant, State
from pipeline.hudi.timeline.timeline import Timeline
from pipeline.storage.base import Storage, StorageNotFoundError

_PARALLEL = 8
#: Files of a level that become one of the next, and manifests kept for readers of an older one (Hudi's defaults).
_FILES_PER_LEVEL = 10
_MANIFESTS_KEPT = 3
_FILE = re.compile(r"^(\d+)_(\d+)_(\d+)\.parquet$")

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
_ARCHIVED = (COMMIT, DELTA_COMMIT, CLEAN, ROLLBACK)


def archive(table: MetadataTable) -> int:
    """Cut the metadata table's active timeline down; returns how many instants left it.

    Only what completed before the oldest slice that is kept, so that no file on storage needs an archived instant to
    be told apart: what compactions wrote stays as long as it is a newest base file.
    """
    before = oldest_kept_compaction(table)
    timeline = table.timeline
    if before is None or len(timeline.completed()) <= table.config.archive_after:
        return 0
    bases = {g.base.name.instant for groups in table.reader.groups.values() for g in groups if g.base is not None}
    old = [
        instant
        for instant in timeline.completed_actions(_ARCHIVED)
        if instant.completion_time is not None and instant.completion_time <= before
        if instant.requested_time not in bases
    ]
    room = len(timeline.completed()) - table.config.archive_keep
    old = old[: max(room, 0)]
    if old:
        move_to_history(table.storage, old)
        table.timeline = Timeline.load(table.storage)
    return len(old)


def move_to_history(storage: Storage, instants: Sequence[Instant]) -> None:
    """Archive completed instants, oldest first; ``storage`` is rooted at their table. Raises StorageError."""
    history = _History(storage)
    fresh = history.without_archived(instants)
    if fresh:
        with ThreadPoolExecutor(_PARALLEL) as pool:
            rows = list(pool.map(lambda instant: _row(storage, instant), fresh))
        history.add(pa.Table.from_pylist(rows, schema=_SCHEMA), level=0)
        history.merge_levels()
    paths = [_pending_paths(instant) for instant in instants]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(storage.delete, [path for group in paths for path in group]))
        list(pool.map(storage.delete, [instant.path for instant in instants]))


def _pending_paths(instant: Instant) -> list[str]:
    actions = (COMPACTION, COMMIT) if instant.action == COMMIT else (instant.action,)
    states = (State.REQUESTED, State.INFLIGHT)
    return [Instant(instant.requested_time, action, state).path for action in actions for state in states]


def _row(storage: Storage, instant: Instant) -> dict[str, Any]:
    plan_of = {COMMIT: COMPACTION, CLEAN: CLEAN}.get(instant.action)
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
        "metadata": storage.read(instant.path),
        "plan": plan,
        "version": 1,
    }


class _History:
    """The manifest of a table's history, and the changes to it."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._version, self._files = self._load()

    def _load(self) -> tuple[int, dict[str, int]]:
        try:
            version = int(self._storage.read(f"{HISTORY_PATH}/_version_"))
        except StorageNotFoundError:
            return 0, {}
        return version, self._manifest(version)

    def _manifest(self, version: int) -> dict[str, int]:
        entries = json.loads(self._storage.read(f"{HISTORY_PATH}/manifest_{version}"))["files"]
        return {entry["fileName"]: entry["fileLen"] for entry in entries}

    def without_archived(self, instants: Sequence[Instant]) -> list[Instant]:
        """Those that the history does not hold; only files whose range of instants meets theirs are read."""
        first, last = min(i.requested_time for i in instants), max(i.requested_time for i in instants)
        held: set[str] = set()
        for name in self._files:
            match = _FILE.match(name)
            if match and match.group(1) <= last and match.group(2) >= first:
                held.update(self._read(name).column("instantTime").to_pylist())
        return [instant for instant in instants if instant.requested_time not in held]

    def _read(self, name: str) -> pa.Table:
        return pq.read_table(pa.BufferReader(self._storage.read(f"{HISTORY_PATH}/{name}")))

    def add(self, rows: pa.Table, level: int, replaced: Iterable[str] = ()) -> None:
        """Write a file of a level and a manifest that names it instead of those it replaces."""
        times = rows.column("instantTime").to_pylist()
        sink = pa.BufferOutputStream()
        pq.write_table(rows.cast(_SCHEMA), sink, compression="zstd")
        data = sink.getvalue().to_pybytes()
        name = f"{min(times)}_{max(times)}_{level}.parquet"
        self._storage.write(f"{HISTORY_PATH}/{name}", data)
        gone = set(replaced)
        self._files = {**{n: size for n, size in self._files.items() if n not in gone}, name: len(data)}
        self._version += 1
        entries = [{"fileName": n, "fileLen": size} for n, size in self._files.items()]
        self._storage.write(
            f"{HISTORY_PATH}/manifest_{self._version}", json.dumps({"files": entries}, indent=2).encode()
        )
        self._storage.write(f"{HISTORY_PATH}/_version_", str(self._version).encode())

    def merge_levels(self) -> None:
        """Merge full levels upwards, then delete what no kept manifest names."""
        level = 0
        while len(mine := sorted(name for name in self._files if _level(name) == level)) >= _FILES_PER_LEVEL:
            batch = mine[:_FILES_PER_LEVEL]
            rows = pa.concat_tables([self._read(name).cast(_SCHEMA) for name in batch])
            self.add(rows.sort_by("instantTime"), level + 1, replaced=batch)
            level += 1
        if level:
            self._delete_unnamed()

    def _delete_unnamed(self) -> None:
        names = [info.path.rpartition("/")[2] for info in self._storage.list(HISTORY_PATH)]
        versions = sorted((int(n.split("_")[1]) for n in names if re.match(r"^manifest_\d+$", n)), reverse=True)
        kept = versions[:_MANIFESTS_KEPT]
        named = {name for version in kept for name in self._manifest(version)}
        doomed = [f"manifest_{version}" for version in versions[_MANIFESTS_KEPT:]]
        doomed += [name for name in names if _FILE.match(name) and name not in named]
        for name in doomed:
            self._storage.delete(f"{HISTORY_PATH}/{name}")


def _level(name: str) -> int:
    match = _FILE.match(name)
    return int(match.group(3)) if match else -1
