"""HDFS over its native protocol, without a JVM.

A file under construction is visible on HDFS, empty or cut short, until it is closed; if its writer dies it stays so
until the lease runs out. So a file is written under a temporary name, synced to the DataNodes' disks and closed, and
then takes its name by a rename, which the NameNode does in one step: refusing a taken name for an exclusive create,
replacing it for a write. If the answer to a rename is lost, the temporary file shows the outcome: if it is gone, the
rename was done. A writer that is killed leaves a temporary file that no listing shows.

Closing a file that is not empty takes about half a second (measured: the client asks the NameNode again only after
400 ms if the DataNode's report was not there yet). Write files in parallel; empty files take milliseconds.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from hdfs_native import Client, FileStatus, WriteOptions

from hudilake.clock import now_ms
from hudilake.errors import ConfigError
from hudilake.storage.base import AlreadyExistsError, FileInfo, Files, Names, OutcomeUnknownError, StorageError
from hudilake.storage.hdfs_errors import CLIENT_ERRORS, explain, retrying, translate
from hudilake.storage.paths import dir_path, file_path, is_temporary, join, temporary_name

_CONNECT_ATTEMPTS = 3
_CONNECT_TIMEOUT_S = 10
_WRITE_BYTES = 8 << 20
_OWN_OPTIONS = frozenset({"hsync", "config_dir", "kerberos_principal", "kerberos_keytab", "kerberos_cache"})


@dataclass(frozen=True, slots=True, repr=False)
class HdfsStorage:
    """Files below a directory of an HDFS.

    Args:
        authority: ``host:port`` of a NameNode, or the name of a nameservice; empty for the configuration's default.
        root: the directory's absolute path, without a trailing slash.
        options: the client's configuration. It travels with a pickled storage, and is never shown.
        hsync: False leaves it to the DataNodes when data reaches their disks.
    """

    authority: str
    root: str
    options: tuple[tuple[str, str], ...] = ()
    hsync: bool = True

    def __repr__(self) -> str:
        return f"HdfsStorage({self.uri!r})"

    @property
    def uri(self) -> str:
        """``hdfs://authority/path``, nothing percent-encoded."""
        return f"hdfs://{self.authority}{self.root}"

    def read(self, path: str) -> bytes:
        """The whole file. Raises StorageNotFoundError."""
        with self._translated("read", path):
            return retrying(lambda: self._client.read(self._absolute(path)).read())

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """``length`` bytes from ``start`` (fewer at the end of the file). Raises StorageNotFoundError."""
        with self._translated("read", path):
            return retrying(lambda: self._read_range(path, start, length))

    def create(self, path: str, data: bytes) -> None:
        """Write a file that must not exist yet. Raises AlreadyExistsError, OutcomeUnknownError."""
        self._put(path, data, "create")

    def write(self, path: str, data: bytes) -> None:
        """Write or replace a file."""
        self._put(path, data, "write")

    def delete(self, path: str) -> bool:
        """Delete one file; False if there was none."""
        if self.stat(path) is None:
            return False
        with self._translated("delete", path):
            retrying(lambda: self._client.delete(self._absolute(path)))
        return True

    def delete_tree(self, prefix: str) -> None:
        """Delete a directory and everything below it."""
        with self._translated("delete", prefix):
            retrying(lambda: self._client.delete(self._dir(prefix), recursive=True))

    def stat(self, path: str) -> FileInfo | None:
        """The file, or None."""
        with self._translated("stat", path):
            try:
                status = retrying(lambda: self._client.get_file_info(self._absolute(path)))
            except FileNotFoundError:
                return None
            return None if status.isdir else FileInfo(path, status.length, status.modification_time)

    def list(self, prefix: str, start_after: str | None = None) -> Files:
        """The files directly in a directory, by name; only names greater than ``start_after`` if given."""
        infos = (self._below(status) for status in self._entries(prefix) if not status.isdir)
        first = join(dir_path(prefix), start_after or "")
        return sorted((i for i in infos if not start_after or i.path > first), key=lambda info: info.path)

    def list_dirs(self, prefix: str) -> Names:
        """The bare names of the directories directly in a directory, sorted."""
        return sorted(_name(status) for status in self._entries(prefix) if status.isdir)

    def walk(self, prefix: str) -> Iterator[FileInfo]:
        """All files at or below a directory, in no promised order."""
        statuses = self._entries(prefix, recursive=True)
        return iter([self._below(status) for status in statuses if not status.isdir])

    def unfinished(self, prefix: str) -> Iterator[FileInfo]:
        """The half-written files at or below a directory, which listings leave out."""
        statuses = self._all_entries(prefix, recursive=True)
        return iter([self._below(status) for status in statuses if is_temporary(_name(status))])

    def sub(self, path: str) -> HdfsStorage:
        """The same store with its root further down."""
        return HdfsStorage(self.authority, self._dir(path).rstrip("/"), self.options, self.hsync)

    def unsynced(self) -> HdfsStorage:
        """The same store without waiting for the DataNodes' disks."""
        return HdfsStorage(self.authority, self.root, self.options, hsync=False)

    def touch(self, path: str) -> bool:
        """Set the file's time of change to now, by this machine's clock; False if there is no file."""
        with self._translated("touch", path):
            try:
                retrying(lambda: self._client.set_times(self._absolute(path), now := now_ms(), now))
            except FileNotFoundError:
                return False
            return True

    def make(self) -> bool:
        """Make the root with the directories above it; False if it is there."""
        if self._is_dir(self._dir("")):
            return False
        with self._translated("make a directory", ""):
            retrying(lambda: self._client.mkdirs(self._dir(""), 0o755, create_parent=True))
        return True

    def is_there(self) -> bool:
        """Whether there is a directory or a file."""
        with self._translated("stat", ""):
            try:
                retrying(lambda: self._client.get_file_info(self._dir("")))
            except FileNotFoundError:
                return False
        return True

    def move_to(self, target: HdfsStorage) -> None:
        """Move the root in one step to a place where nothing is."""
        with self._translated("move", ""):
            retrying(lambda: self._client.mkdirs(target.root.rpartition("/")[0] or "/", 0o755, create_parent=True))
            self._client.rename(self.root, target.root)

    def remove_empty(self) -> bool:
        """Remove the root if nothing is in it; whether it was removed."""
        if not self._is_dir(self._dir("")) or self._all_entries("", recursive=False):
            return False
        with self._translated("remove a directory", ""):
            return bool(retrying(lambda: self._client.delete(self._dir(""))))

    def nearest_existing(self) -> HdfsStorage:
        """The root if it exists, else the nearest existing directory above it."""
        root = self.root
        while root and not self._is_dir(root):
            root = root.rpartition("/")[0]
        return HdfsStorage(self.authority, root, self.options, self.hsync)

    @property
    def _client(self) -> Client:
        return _connect(self.authority, self.options)

    def _absolute(self, path: str) -> str:
        return f"{self.root}/{file_path(path)}"

    def _dir(self, prefix: str) -> str:
        return f"{self.root}/{dir_path(prefix)}".rstrip("/") or "/"

    def _below(self, status: FileStatus) -> FileInfo:
        return FileInfo(status.path[len(self.root) + 1 :], status.length, status.modification_time)

    def _is_dir(self, directory: str) -> bool:
        with self._translated("stat", ""), contextlib.suppress(FileNotFoundError):
            return retrying(lambda: self._client.get_file_info(directory)).isdir
        return False

    def _read_range(self, path: str, start: int, length: int) -> bytes:
        file = self._client.read(self._absolute(path))
        length = min(length, len(file) - start)
        return file.read_range(start, length) if length > 0 else b""

    def _entries(self, prefix: str, *, recursive: bool = False) -> tuple[FileStatus, ...]:
        """The entries of a directory without half-written files; empty if there is no such directory."""
        return tuple(s for s in self._all_entries(prefix, recursive=recursive) if not is_temporary(_name(s)))

    def _all_entries(self, prefix: str, *, recursive: bool) -> tuple[FileStatus, ...]:
        directory = self._dir(prefix)
        with self._translated("list", prefix):
            try:
                statuses = retrying(lambda: tuple(self._client.list_status(directory, recursive)))
            except FileNotFoundError:
                return ()
            except RuntimeError as error:
                if explain(error).is_not_a_directory:
                    return ()
                raise
        return tuple(s for s in statuses if s.path != directory)

    def _put(self, path: str, data: bytes, operation: str) -> None:
        target = self._absolute(path)
        temporary = f"{target.rpartition('/')[0]}/{temporary_name()}"
        with self._translated(operation, path):
            try:
                retrying(lambda: self._write_temporary(temporary, data))
                self._rename(temporary, target, path, overwrite=operation == "write")
            except OutcomeUnknownError:
                raise
            except BaseException:
                with contextlib.suppress(*CLIENT_ERRORS):
                    self._client.delete(temporary)
                raise

    def _write_temporary(self, temporary: str, data: bytes) -> None:
        with self._client.create(temporary, WriteOptions(overwrite=True, create_parent=True)) as file:
            for offset in range(0, len(data), _WRITE_BYTES):
                file.write(data[offset : offset + _WRITE_BYTES])
            if data and self.hsync:
                file.hsync()

    def _rename(self, temporary: str, target: str, path: str, *, overwrite: bool) -> None:
        def rename() -> None:
            try:
                self._client.rename(temporary, target, overwrite)
            except CLIENT_ERRORS as failure:
                if not self._renamed(temporary, path, failure):
                    raise

        try:
            retrying(rename)
        except FileExistsError:
            if overwrite:
                raise
            raise AlreadyExistsError(
                "the file exists already", do_next="another writer created it first: read it", path=join(self.uri, path)
            ) from None

    def _renamed(self, temporary: str, path: str, failure: Exception) -> bool:
        """Whether a rename that returned an error was done: only this process knows the temporary name."""
        try:
            retrying(lambda: self._client.get_file_info(temporary))
        except FileNotFoundError:
            return self.stat(path) is not None
        except CLIENT_ERRORS:
            raise OutcomeUnknownError(
                f"cannot tell whether the file got its name: {explain(failure).text}",
                do_next="start again when the NameNode answers: the file is read back first",
                path=join(self.uri, path),
            ) from None
        return False

    @contextlib.contextmanager
    def _translated(self, operation: str, path: str) -> Iterator[None]:
        try:
            yield
        except CLIENT_ERRORS as error:
            raise translate(error, operation, join(self.uri, path), self.options) from None


def open_hdfs(authority: str, path: str, options: Mapping[str, str]) -> HdfsStorage:
    """A storage on HDFS.

    Args:
        authority: ``host:port``, a nameservice, or empty for ``fs.defaultFS``.
        path: the root, absolute.
        options: Hadoop properties (``dfs.*``, ``fs.*``, ``hadoop.*``) over those of ``$HADOOP_CONF_DIR``, and
            ``config_dir``, ``kerberos_principal``, ``kerberos_keytab``, ``kerberos_cache``, and ``hsync`` (``true`` or
            ``false``).

    Raises:
        ConfigError: an unknown option, or another value of ``hsync``.
    """
    unknown = [k for k in options if k not in _OWN_OPTIONS and not k.startswith(("dfs.", "fs.", "hadoop."))]
    hsync = options.get("hsync", "true").lower()
    if unknown or hsync not in ("true", "false"):
        raise ConfigError(
            "HDFS does not know these options", do_next="fix the storage options", options=unknown or ["hsync"]
        )
    root = dir_path("/".join(filter(None, path.split("/"))))
    rest = tuple(sorted((k, v) for k, v in options.items() if k != "hsync"))
    return HdfsStorage(authority, f"/{root}" if root else "", rest, hsync == "true")


@lru_cache(maxsize=32)
def _connect(authority: str, options: tuple[tuple[str, str], ...]) -> Client:
    """One client per process for all storages with the same NameNode and options."""
    _await_name_node(authority)
    own = {key: value for key, value in options if key in _OWN_OPTIONS}
    return Client(
        f"hdfs://{authority}/",
        {key: value for key, value in options if key not in _OWN_OPTIONS},
        own.get("config_dir"),
        kerberos_principal=own.get("kerberos_principal"),
        kerberos_keytab=own.get("kerberos_keytab"),
        kerberos_cache=own.get("kerberos_cache"),
    )


def _await_name_node(authority: str) -> None:
    """Fail within seconds if nothing listens at the address: the client tries for three minutes (measured)."""
    host, _, port = authority.rpartition(":")
    if not port.isdigit():
        return
    for attempt in range(1, _CONNECT_ATTEMPTS + 1):
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_TIMEOUT_S):
                return
        except OSError as error:
            if attempt == _CONNECT_ATTEMPTS:
                raise StorageError(
                    f"the NameNode does not answer: {error}",
                    do_next="check that it runs and that the port is its RPC port, then start again",
                    path=f"hdfs://{authority}",
                ) from error
            time.sleep(0.5 * attempt)


def _name(status: FileStatus) -> str:
    return status.path.rpartition("/")[2]
