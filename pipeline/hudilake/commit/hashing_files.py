"""The hashing metadata that a resize writes, and what becomes of it.

It stands alone: rollbacks, restores and the resizes of binlake all use it, each in another room.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from hudilake.format.definition.consistent import COMMIT_SUFFIX, HASHING_PATH, HashingMetadata, hashing_file
from hudilake.storage.base import Storage, StorageError


def write_rings(storage: Storage, rings: Iterable[HashingMetadata]) -> None:
    """Write the metadata of a resize, before it completes: readers count it from then on. Raises StorageError."""
    for ring in rings:
        storage.write(hashing_file(ring.partition_path, ring.instant), ring.to_bytes())


def confirm_rings(storage: Storage, rings: Iterable[HashingMetadata]) -> None:
    """Say that the resize has completed, also for the time after its instant is archived. Without the file Hudi looks
    for the resize in the timeline, then for base files of the ring's nodes, so a failure does not fail the resize."""
    with contextlib.suppress(StorageError):
        for ring in rings:
            storage.write(hashing_file(ring.partition_path, ring.instant, COMMIT_SUFFIX), b"")


def delete_rings(storage: Storage, instant: str) -> None:
    """Delete the metadata of a resize that is undone. Call it while its instant is in the timeline: Hudi may count the
    metadata of an unknown instant (``table.rings``). Repeatable. Raises StorageError."""
    for info in list(storage.walk(HASHING_PATH)):
        if info.path.rpartition("/")[2].startswith(f"{instant}."):
            storage.delete(info.path)
