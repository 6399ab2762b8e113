"""The content of a completed savepoint: the files it holds, and its user (Avro ``HoodieSavepointMetadata``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hudilake.format.timeline.avro_container import decode_container, encode_container
from hudilake.format.timeline.instant import SAVEPOINT, Instant
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import Storage

_AVRO = "HoodieSavepointMetadata"


@dataclass(frozen=True)
class Savepoint:
    """A completed savepoint.

    Args:
        instant: requested time of the write whose table state it holds.
        user, comment: as given when it was made.
        made_ms: when it was made, in ms since the epoch.
        files: bare names of the files it holds, by partition path.

    Example:
        >>> instant = orders.savepoint(comment="before the migration")
        >>> [(savepoint.instant == instant, savepoint.comment) for savepoint in orders.savepoints()]
        [(True, 'before the migration')]
    """

    instant: str
    user: str
    comment: str
    made_ms: int
    files: Mapping[str, tuple[str, ...]]


def savepoints(storage: Storage, timeline: Timeline) -> list[Savepoint]:
    """The table's savepoints, oldest first. Raises CorruptDataError, StorageError."""
    return [read_savepoint(storage, instant) for instant in timeline.completed_actions({SAVEPOINT})]


def held_files(completed_savepoints: Iterable[Savepoint]) -> dict[str, set[str]]:
    """The bare names of all files that savepoints hold, by partition path."""
    held: dict[str, set[str]] = {}
    for savepoint in completed_savepoints:
        for path, names in savepoint.files.items():
            held.setdefault(path, set()).update(names)
    return held


def encode_savepoint(made: Savepoint) -> bytes:
    """The body of the completed file."""
    partitions = {path: {"partitionPath": path, "savepointDataFile": list(names)} for path, names in made.files.items()}
    record = {
        "savepointedBy": made.user,
        "savepointedAt": made.made_ms,
        "comments": made.comment,
        "partitionMetadata": partitions,
        "version": 1,
    }
    return encode_container(_AVRO, record)


def read_savepoint(storage: Storage, completed: Instant) -> Savepoint:
    """One of the timeline's. Raises CorruptDataError, StorageError."""
    body = decode_container(storage.read(completed.path), completed.path)
    return Savepoint(
        completed.requested_time,
        body.get("savepointedBy") or "",
        body.get("comments") or "",
        int(body.get("savepointedAt") or 0),
        {path: tuple(held["savepointDataFile"]) for path, held in (body.get("partitionMetadata") or {}).items()},
    )
