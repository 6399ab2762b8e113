"""Does a store refuse to create a file twice? Everything that keeps two writers apart rests on it."""

from __future__ import annotations

from pipeline.clock import new_uuid
from pipeline.errors import UnsupportedError
from pipeline.storage.base import AlreadyExistsError, Storage
from pipeline.storage.hdfs import HdfsStorage
from pipeline.storage.local import LocalStorage
from pipeline.storage.objects import ObjectStorage

_FIRST, _SECOND = b"first", b"second"


def check_exclusive_create(storage: Storage, under: str = "") -> None:
    """Create one file twice; the second time must fail and change nothing. Nothing is left behind.

    An object store must also keep the metadata by which a create whose answer was lost is known again.

    Where the directory does not exist yet, the nearest one above it that does is probed instead of making it.

    Args:
        storage: the store.
        under: the directory to probe in.

    Raises:
        UnsupportedError: the store let the second create pass, lost the first one's bytes, or drops metadata.
        StorageError, ConfigError: the store cannot be written to at all.
    """
    place = storage.sub(under) if under else storage
    if isinstance(place, (LocalStorage, HdfsStorage)):
        place = place.nearest_existing()
    name = f".binlake-check-{new_uuid()}"
    try:
        place.create(name, _FIRST)
        sound = _is_refused(place, name) and place.read(name) == _FIRST
        claimed = not isinstance(place, ObjectStorage) or place.keeps_claims(name)
    finally:
        place.delete(name)
    if not sound:
        raise UnsupportedError(
            "the store lets a file be created twice, so two writers could both win",
            do_next="use a store with conditional writes (an S3 server must honour If-None-Match on PutObject)",
            uri=place.uri,
        )
    if not claimed:
        raise UnsupportedError(
            "the store drops the metadata of an object, so a create whose answer was lost is not known again",
            do_next="use a store that keeps user metadata (x-amz-meta-* on S3 servers)",
            uri=place.uri,
        )


def _is_refused(place: Storage, name: str) -> bool:
    try:
        place.create(name, _SECOND)
    except AlreadyExistsError:
        return True
    return False
