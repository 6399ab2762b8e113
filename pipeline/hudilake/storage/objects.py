"""Object stores: S3 and its likes, Google Cloud Storage, Azure, and one in memory.

An object appears whole or not at all, so a write is one put. An exclusive create is a put on condition that the key is
free. Such a put may fail although it was done: the answer was lost, or the client's own retry met the object that its
first try had made. So every create marks its object with a claim (a random id in the object's metadata). On any answer
other than success the object is read: if it has our claim, it is ours. Equal bytes are not enough: two writers that
both create an empty file have equal bytes, and only one of them has created it.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import obstore
from obstore.exceptions import AlreadyExistsError as ObjectExistsError
from obstore.exceptions import GenericError, PreconditionError

from hudilake.clock import new_uuid
from hudilake.errors import ConfigError, UnsupportedError
from hudilake.storage.abilities import ReplacedError, Version
from hudilake.storage.base import AlreadyExistsError, FileInfo, Files, Names, OutcomeUnknownError
from hudilake.storage.object_client import (
    AZURE_SCHEMES,
    S3_SCHEMES,
    STORE_ERRORS,
    Options,
    connect,
    describe,
    is_out_of_range,
    translate,
)
from hudilake.storage.paths import dir_path, file_path, join

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode
    from obstore.store import ObjectStore

OBJECT_SCHEMES = (*S3_SCHEMES, "gs", *AZURE_SCHEMES, "memory")

# Azure allows letters, digits and underscores in such a name, S3 lower-cases it.
_CLAIM = "binlakeclaim"
_CREATE_ATTEMPTS = 4
_FIRST_PAUSE_S = 0.1
_PAGE = 1000
_PART_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, repr=False)
class ObjectStorage:
    """Objects below a prefix of a bucket. Directories are prefixes: they exist while something is in them.

    Args:
        bucket_uri: scheme and bucket, ``s3://lake``.
        prefix: the path of the root in the bucket; may be empty.
        options: the client's options. They travel with a pickled storage, and are never shown.
    """

    bucket_uri: str
    prefix: str
    options: Options = ()

    def __repr__(self) -> str:
        return f"ObjectStorage({self.uri!r})"

    @property
    def uri(self) -> str:
        """Scheme, bucket and prefix as they were given, nothing percent-encoded."""
        return join(self.bucket_uri, self.prefix)

    def read(self, path: str) -> bytes:
        """The whole object. Raises StorageNotFoundError."""
        with self._translated("read", path):
            return obstore.get(self._store, self._key(path)).bytes().to_bytes()

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """``length`` bytes from ``start`` (fewer at the end of the object). Raises StorageNotFoundError."""
        with self._translated("read", path):
            if length == 0:
                obstore.head(self._store, self._key(path))
                return b""
            try:
                return obstore.get_range(self._store, self._key(path), start=start, length=length).to_bytes()
            except GenericError as error:
                if is_out_of_range(error):
                    return b""
                raise

    def create(self, path: str, data: bytes) -> None:
        """Put an object where none is. Raises AlreadyExistsError, OutcomeUnknownError."""
        key, claim, data = self._key(path), new_uuid(), self._owned(data)
        failure: Exception | None = None
        for attempt in range(_CREATE_ATTEMPTS):
            if failure:
                time.sleep(_FIRST_PAUSE_S * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            try:
                obstore.put(self._store, key, data, mode="create", attributes={_CLAIM: claim}, use_multipart=False)
                return
            except (ObjectExistsError, PreconditionError, GenericError) as error:
                failure = error
            except STORE_ERRORS as error:
                raise translate(error, "create", self._uri_of(path), self.options) from None
            owner = self._owner(path, failure)
            if owner == claim:
                return
            if owner is not None:
                raise AlreadyExistsError(
                    "the object exists already",
                    do_next="another writer created it first: read it",
                    path=self._uri_of(path),
                )
        raise self._unknown(path, failure)

    def write(self, path: str, data: bytes) -> None:
        """Put or replace an object."""
        with self._translated("write", path):
            obstore.put(self._store, self._key(path), self._owned(data), chunk_size=_PART_BYTES)

    def delete(self, path: str) -> bool:
        """Delete one object; False if there was none."""
        if self.stat(path) is None:
            return False
        with self._translated("delete", path):
            obstore.delete(self._store, self._key(path))
        return True

    def delete_tree(self, prefix: str) -> None:
        """Delete all objects below a prefix."""
        with self._translated("delete", prefix):
            for page in obstore.list(self._store, self._dir(prefix) or None, chunk_size=_PAGE):
                obstore.delete(self._store, [meta["path"] for meta in page])

    def stat(self, path: str) -> FileInfo | None:
        """The object, or None."""
        with self._translated("stat", path):
            try:
                return _info(path, obstore.head(self._store, self._key(path)))
            except FileNotFoundError:
                return None

    def list(self, prefix: str, start_after: str | None = None) -> Files:
        """The objects directly below a prefix, by name.

        With ``start_after`` the store itself starts there, so the cost does not grow with the objects before it.
        """
        base = self._dir(prefix)
        with self._translated("list", prefix):
            if not start_after:
                metas = obstore.list_with_delimiter(self._store, base or None)["objects"]
                infos = [self._below(meta) for meta in metas if _name_in(base, meta)]
            else:
                infos = [self._below(meta) for meta in self._names_after(base, start_after)]
        return sorted(infos, key=lambda info: info.path)

    def list_dirs(self, prefix: str) -> Names:
        """The bare names of the directories directly in a directory, sorted."""
        with self._translated("list", prefix):
            prefixes = obstore.list_with_delimiter(self._store, self._dir(prefix) or None)["common_prefixes"]
        return sorted(path.rpartition("/")[2] for path in prefixes)

    def walk(self, prefix: str) -> Iterator[FileInfo]:
        """All objects below a prefix, in no promised order."""
        with self._translated("list", prefix):
            for page in obstore.list(self._store, self._dir(prefix) or None, chunk_size=_PAGE):
                yield from map(self._below, page)

    def move_files(self, target: ObjectStorage) -> None:
        """Copy all objects below the root within the bucket, then delete them here."""
        if target.bucket_uri != self.bucket_uri:
            raise UnsupportedError(
                "objects are not moved between buckets", do_next="copy them with a tool of the store", path=target.uri
            )
        with self._translated("move", ""):
            keys = [meta["path"] for page in obstore.list(self._store, self._dir("") or None) for meta in page]
            for key in keys:
                obstore.copy(self._store, key, join(target.prefix, key[len(self.prefix) + 1 if self.prefix else 0 :]))
            if keys:
                obstore.delete(self._store, keys)

    def sub(self, path: str) -> ObjectStorage:
        """The same store with its root further down."""
        return ObjectStorage(self.bucket_uri, self._dir(path), self.options)

    def read_versioned(self, path: str) -> tuple[bytes, Version]:
        """An object and its version. Raises StorageNotFoundError."""
        with self._translated("read", path):
            result = obstore.get(self._store, self._key(path))
            return result.bytes().to_bytes(), Version(result.meta["e_tag"], result.meta["version"])

    def replace_if(self, path: str, data: bytes, version: Version | None) -> Version:
        """Put an object if it still has that version. Raises ReplacedError, OutcomeUnknownError."""
        mode = cast("PutMode", (version and version.conditions()) or "create")
        try:
            done = obstore.put(self._store, self._key(path), data, mode=mode, use_multipart=False)
            return Version(done["e_tag"], done["version"])
        except (ObjectExistsError, PreconditionError, FileNotFoundError) as error:
            raise ReplacedError(
                f"the object is not the one that was read: {describe(error, self.options)}",
                do_next="read it again: another writer has changed it",
                path=self._uri_of(path),
            ) from None
        except GenericError as error:
            raise self._unknown(path, error) from None
        except STORE_ERRORS as error:
            raise translate(error, "replace", self._uri_of(path), self.options) from None

    def within(self, seconds: float) -> ObjectStorage:
        """The same store with a time limit for each call. The memory store answers at once."""
        if self._in_memory:
            return self
        limits = {"timeout": f"{seconds / 2:.3f}s", "retry_timeout_s": str(seconds / 2)}
        return ObjectStorage(self.bucket_uri, self.prefix, tuple(sorted({**dict(self.options), **limits}.items())))

    def keeps_claims(self, path: str) -> bool:
        """Whether a created object has the claim it was given: False for a store that drops metadata."""
        with self._translated("read", path):
            return bool(self._claim_at(path))

    def _owned(self, data: bytes) -> bytes:
        """What the store may keep: the one in memory keeps the buffer that it gets, and that may be a mapped file."""
        return bytes(data) if self._in_memory else data

    @property
    def _in_memory(self) -> bool:
        return self.bucket_uri.startswith("memory:")

    @property
    def _store(self) -> ObjectStore:
        return connect(self.bucket_uri, self.options)

    def _key(self, path: str) -> str:
        return join(self.prefix, file_path(path))

    def _dir(self, prefix: str) -> str:
        return join(self.prefix, dir_path(prefix))

    def _uri_of(self, path: str) -> str:
        return join(self.uri, path)

    def _below(self, meta: ObjectMeta) -> FileInfo:
        return _info(meta["path"][len(self.prefix) + 1 if self.prefix else 0 :], meta)

    def _names_after(self, base: str, start_after: str) -> Iterator[ObjectMeta]:
        """Objects directly below ``base`` with greater names. After a page that ends in a subdirectory the listing
        continues behind that subdirectory."""
        offset: str | None = join(base, start_after)
        while offset:
            pages = obstore.list(self._store, base or None, offset=offset, chunk_size=_PAGE)
            offset = None
            for page in pages:
                yield from (meta for meta in page if _name_in(base, meta))
                inside = page[-1]["path"][len(base) + 1 if base else 0 :]
                if "/" in inside and len(page) == _PAGE:
                    offset = join(base, inside.partition("/")[0]) + "/\U0010ffff"
                    break

    def _claim_at(self, path: str) -> str:
        return obstore.get(self._store, self._key(path), options={"head": True}).attributes.get(_CLAIM, "")

    def _owner(self, path: str, failure: Exception) -> str | None:
        """The claim of the object at the path (empty if it has no claim), or None if there is no object."""
        try:
            owner = self._claim_at(path)
        except FileNotFoundError:
            return None
        except STORE_ERRORS:
            raise self._unknown(path, failure) from None
        if not owner and isinstance(failure, GenericError):
            # The put had no answer and the object has no claim: it may be ours in a store that drops metadata.
            raise self._unknown(path, failure)
        return owner

    def _unknown(self, path: str, failure: Exception | None) -> OutcomeUnknownError:
        detail = describe(failure, self.options) if failure else "no answer"
        return OutcomeUnknownError(
            f"cannot tell whether the object was written: {detail}",
            do_next="start again when the store answers: the object is read back first",
            path=self._uri_of(path),
        )

    @contextlib.contextmanager
    def _translated(self, operation: str, path: str) -> Iterator[None]:
        try:
            yield
        except STORE_ERRORS as error:
            raise translate(error, operation, self._uri_of(path), self.options) from None


def open_objects(scheme: str, bucket: str, path: str, options: Mapping[str, str]) -> ObjectStorage:
    """A storage on an object store.

    Args:
        scheme: one of ``OBJECT_SCHEMES``.
        bucket: the bucket (Azure: container, or ``container@account.dfs.core.windows.net``).
        path: the root's path in it.
        options: obstore's own, see :func:`hudilake.storage.open_storage`.

    Raises:
        ConfigError: no bucket, or options that the store refuses.
    """
    if not bucket:
        raise ConfigError("the uri names no bucket", do_next=f"write {scheme}://bucket/path")
    if scheme == "memory":
        options = {"process": str(os.getpid())}
    prefix = dir_path("/".join(filter(None, path.split("/"))))
    storage = ObjectStorage(f"{scheme}://{bucket}", prefix, tuple(sorted(options.items())))
    connect(storage.bucket_uri, storage.options)
    return storage


def _info(path: str, meta: ObjectMeta) -> FileInfo:
    return FileInfo(path, meta["size"], round(meta["last_modified"].timestamp() * 1000))


def _name_in(base: str, meta: ObjectMeta) -> bool:
    """True for an object directly below ``base``, but not for the placeholder that Hadoop may keep for a directory."""
    start = f"{base}/" if base else ""
    return meta["path"].startswith(start) and "/" not in meta["path"][len(start) :]
