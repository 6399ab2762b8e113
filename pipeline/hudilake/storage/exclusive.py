"""Checks that a store refuses to create a file twice. The exclusion of two writers depends on it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from hudilake.clock import new_uuid
from hudilake.errors import UnsupportedError
from hudilake.storage.base import AlreadyExistsError, Storage
from hudilake.storage.objects import ObjectStorage

_FIRST, _SECOND = b"first", b"second"


@runtime_checkable
class _WithDirectories(Protocol):
    """A storage whose directories must be there before their files: local disk, HDFS."""

    def nearest_existing(self) -> Storage: ...


def check_exclusive_create(storage: Storage, under: str = "") -> None:
    """Create one file twice; the second time must fail and change nothing. Nothing is left behind.

    An object store must also keep user metadata: it identifies a create whose answer was lost.

    If the directory does not exist yet, the nearest existing directory above it is probed, and none is made.

    Args:
        storage: the store.
        under: the directory to probe in.

    Raises:
        UnsupportedError: the store let the second create pass, lost the first one's bytes, or drops metadata.
        StorageError, ConfigError: the store cannot be written to at all.
    """
    directory = storage.sub(under) if under else storage
    if isinstance(directory, _WithDirectories):
        directory = directory.nearest_existing()
    name = f".binlake-check-{new_uuid()}"
    try:
        directory.create(name, _FIRST)
        sound = _is_refused(directory, name) and directory.read(name) == _FIRST
        claimed = not isinstance(directory, ObjectStorage) or directory.keeps_claims(name)
    finally:
        directory.delete(name)
    if not sound:
        raise UnsupportedError(
            "the store lets a file be created twice, so two writers could commit the same instant",
            do_next="use a store with conditional writes (an S3 server must honour If-None-Match on PutObject)",
            uri=directory.uri,
        )
    if not claimed:
        raise UnsupportedError(
            "the store drops the metadata of an object, so a create whose answer was lost cannot be recognised",
            do_next="use a store that keeps user metadata (x-amz-meta-* on S3 servers)",
            uri=directory.uri,
        )


def _is_refused(directory: Storage, name: str) -> bool:
    try:
        directory.create(name, _SECOND)
    except AlreadyExistsError:
        return True
    return False
