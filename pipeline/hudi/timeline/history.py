"""The archived part of the timeline: ``timeline/history``, an LSM tree of Parquet files (written by Hudi's archival).

Only read here: completion times decide which file slice an old log file belongs to, and a commit's own keys may have
been archived by another writer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import CorruptDataError
from pipeline.hudi.timeline.instant import COMMIT, DELTA_COMMIT, TIMELINE_PATH
from pipeline.storage.base import Storage, StorageNotFoundError

HISTORY_PATH = f"{TIMELINE_PATH}/history"


@dataclass(frozen=True, slots=True)
class ArchivedCommit:
    """A completed commit in the history; ``metadata`` is its Avro container."""

    requested_time: str
    action: str
    metadata: bytes


@dataclass
class History:
    """The files named by the newest manifest. Columns are read on first use and kept."""

    storage: Storage
    files: tuple[str, ...]
    _completion: dict[str, str] | None = field(default=None, repr=False)

    @classmethod
    def load(cls, storage: Storage) -> History:
        """Read ``_version_`` and its manifest; empty for a table that was never archived."""
        try:
            version = int(storage.read(f"{HISTORY_PATH}/_version_"))
            manifest = json.loads(storage.read(f"{HISTORY_PATH}/manifest_{version}"))
            return cls(storage, tuple(entry["fileName"] for entry in manifest["files"]))
        except StorageNotFoundError:
            return cls(storage, ())
        except (ValueError, KeyError) as error:
            raise CorruptDataError(
                f"the timeline's history cannot be read: {error}", do_next="restore its manifest", path=HISTORY_PATH
            ) from error

    def completion_time(self, requested_time: str) -> str | None:
        """When an archived instant completed; None if it is not in the history."""
        if self._completion is None:
            table = self._read(["instantTime", "completionTime"])
            pairs = zip(table["instantTime"].to_pylist(), table["completionTime"].to_pylist(), strict=True)
            self._completion = dict(pairs)
        return self._completion.get(requested_time)

    def commits(self) -> list[ArchivedCommit]:
        """The archived commits and deltacommits, newest first."""
        rows = self._read(["instantTime", "action", "metadata"]).to_pylist()
        found = {
            r["instantTime"]: ArchivedCommit(r["instantTime"], r["action"], r["metadata"])
            for r in rows
            if r["action"] in (COMMIT, DELTA_COMMIT) and r["metadata"]
        }
        return [found[time] for time in sorted(found, reverse=True)]

    def _read(self, columns: list[str]) -> pa.Table:
        parts = [
            pq.read_table(pa.BufferReader(self.storage.read(f"{HISTORY_PATH}/{name}")), columns=columns)
            for name in self.files
        ]
        empty = pa.table({name: pa.array([], pa.binary() if name == "metadata" else pa.string()) for name in columns})
        return pa.concat_tables(parts) if parts else empty
