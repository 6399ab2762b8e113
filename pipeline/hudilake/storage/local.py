"""Local disk: a file is written whole under a temporary name, synced, and then takes its name in one step.

A crash before that step leaves a temporary file that no listing shows; after it the whole file is there. The step is
link(2) for an exclusive create, which fails if the name is taken, and rename(2) for a write, which replaces.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hudilake.errors import ConfigError
from hudilake.storage.base import FileInfo, Files, Names, OutcomeUnknownError
from hudilake.storage.local_calls import (
    info_of,
    info_of_entry,
    make_directory,
    read_whole,
    remove_tree,
    scan,
    translated,
    write_new,
)
from hudilake.storage.paths import dir_path, file_path, join, temporary_name, temporary_pattern

_ATTEMPTS = 5
_MAX_KNOWN_DIRECTORIES = 10_000

# Directories whose entries in their parents this process has synced. Every task of a process opens its own storage,
# so the set belongs to the process; a deleted directory is noticed when a file cannot be made in it.
_durable: set[str] = set()
_durable_lock = threading.Lock()


@dataclass(frozen=True, slots=True, repr=False)
class LocalStorage:
    """Files below a directory of the local file system.

    Args:
        root: the directory, absolute; it is made by the first write.
        fsync: False skips all syncing: writes are still whole or absent for other processes, but not after a power cut.
    """

    root: Path
    fsync: bool = True

    def __repr__(self) -> str:
        return f"LocalStorage({self.uri!r})"

    @property
    def uri(self) -> str:
        """``file://`` and the path as it is, nothing percent-encoded: as Hadoop takes it."""
        return f"file://{self.root}"

    def read(self, path: str) -> bytes:
        """The whole file. Raises StorageNotFoundError."""
        with translated("read", self.root, path):
            return read_whole(self._absolute(path))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """``length`` bytes from ``start`` (fewer at the end of the file). Raises StorageNotFoundError."""
        with translated("read", self.root, path), Path(self._absolute(path)).open("rb", buffering=0) as file:
            file.seek(start)
            return file.read(length) or b""

    def create(self, path: str, data: bytes) -> None:
        """Write a file that must not exist yet. Raises AlreadyExistsError."""
        with translated("create", self.root, path):
            self._put(self._absolute(path), data, os.link)

    def write(self, path: str, data: bytes) -> None:
        """Write or replace a file."""
        with translated("write", self.root, path):
            self._put(self._absolute(path), data, os.replace)

    def delete(self, path: str) -> bool:
        """Delete one file; False if there was none."""
        file = self._absolute(path)
        with translated("delete", self.root, path):
            try:
                os.unlink(file)  # noqa: PTH108 - text, as _absolute says
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return False
            with contextlib.suppress(FileNotFoundError):
                self._sync(_parent(file))
            return True

    def delete_tree(self, prefix: str) -> None:
        """Delete a directory and everything below it, also while others delete in it."""
        directory = self.root / dir_path(prefix)
        with translated("delete", self.root, prefix):
            remove_tree(directory)
            with contextlib.suppress(FileNotFoundError):
                self._sync(directory.parent)

    def stat(self, path: str) -> FileInfo | None:
        """The file, or None."""
        file = self._absolute(path)
        with translated("stat", self.root, path):
            try:
                status = os.stat(file)  # noqa: PTH116 - text, as _absolute says
            except (FileNotFoundError, NotADirectoryError):
                return None
            return None if stat.S_ISDIR(status.st_mode) else info_of(path, status)

    def list(self, prefix: str, start_after: str | None = None) -> Files:
        """The files directly in a directory, by name; only names greater than ``start_after`` if given."""
        prefix = dir_path(prefix)
        with translated("list", self.root, prefix):
            names = (e for e in scan(self.root / prefix) if start_after is None or e.name > start_after)
            return sorted((i for e in names if (i := info_of_entry(prefix, e))), key=lambda info: info.path)

    def list_names(self, prefix: str, start_after: str | None = None) -> Names:
        """The bare names of the same files; the directory says which of its entries are files."""
        with translated("list", self.root, dir_path(prefix)):
            names = (e for e in scan(self.root / dir_path(prefix)) if start_after is None or e.name > start_after)
            return sorted(entry.name for entry in names if not entry.is_dir())

    def list_dirs(self, prefix: str) -> Names:
        """The bare names of the directories directly in a directory, sorted."""
        with translated("list", self.root, prefix):
            return sorted(entry.name for entry in scan(self.root / dir_path(prefix)) if entry.is_dir())

    def walk(self, prefix: str) -> Iterator[FileInfo]:
        """All files at or below a directory, in no promised order."""
        waiting = [dir_path(prefix)]
        while waiting:
            directory = waiting.pop()
            with translated("list", self.root, directory):
                for entry in scan(self.root / directory):
                    if entry.is_dir():
                        waiting.append(join(directory, entry.name))
                    elif info := info_of_entry(directory, entry):
                        yield info

    def unfinished(self, prefix: str) -> Iterator[FileInfo]:
        """The half-written files at or below a directory, which listings leave out."""
        with translated("list", self.root, prefix):
            for file in (self.root / dir_path(prefix)).rglob(temporary_pattern()):
                with contextlib.suppress(FileNotFoundError):
                    status, path = file.stat(), file.relative_to(self.root).as_posix()
                    yield info_of(path, status)

    def sub(self, path: str) -> LocalStorage:
        """The same store with its root further down."""
        return LocalStorage(self.root / dir_path(path), self.fsync)

    def unsynced(self) -> LocalStorage:
        """The same store without syncing."""
        return LocalStorage(self.root, fsync=False)

    def touch(self, path: str) -> bool:
        """Set the file's time of change to now; False if there is no file."""
        with translated("touch", self.root, path):
            try:
                os.utime(self._absolute(path))
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def make(self) -> bool:
        """Make the root with the directories above it; False if it is there."""
        with translated("make a directory", self.root, ""):
            if self.root.is_dir():
                return False
            _forget(str(self.root))  # anybody may have deleted it, or one above it, since it was seen
            self._make_directory(str(self.root))
            return True

    def is_there(self) -> bool:
        """Whether there is a directory or a file."""
        return os.path.lexists(self.root)

    def move_to(self, target: LocalStorage) -> None:
        """Move the root in one step to a place where nothing is, or an empty directory."""
        with translated("move", self.root, ""):
            target._make_directory(str(target.root.parent))
            self.root.rename(target.root)
            self._sync(self.root.parent)
            self._sync(target.root.parent)
        _forget_below(self.root)

    def remove_empty(self) -> bool:
        """Remove the root if nothing is in it; whether it was removed."""
        with translated("remove a directory", self.root, ""):
            try:
                self.root.rmdir()
            except (FileNotFoundError, NotADirectoryError):
                return False
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    return False
                raise
        _forget_below(self.root)
        return True

    def followed(self) -> LocalStorage:
        """The same place without symbolic links on the way to it."""
        return LocalStorage(Path(os.path.realpath(self.root)), self.fsync)

    def nearest_existing(self) -> LocalStorage:
        """The root if it exists, else the nearest existing directory above it."""
        return next(
            LocalStorage(directory, self.fsync) for directory in (self.root, *self.root.parents) if directory.is_dir()
        )

    def _absolute(self, path: str) -> str:
        """A file's path as text: a commit asks for dozens of them, and each ``Path`` is parsed anew."""
        return f"{self.root}/{file_path(path)}"

    def _put(self, target: str, data: bytes, publish: Callable[[str, str], object]) -> None:
        directory = _parent(target)
        for attempt in range(_ATTEMPTS + 1):
            try:
                if attempt or self.fsync:  # what is not synced is tried first: the directory is there as a rule
                    self._make_directory(directory)
                self._put_once(target, data, publish)
                break
            except FileNotFoundError:
                # Another process deleted the directory after it was seen.
                _forget(directory)
                if attempt == _ATTEMPTS:
                    raise
        try:
            self._sync(directory)
        except OSError as error:
            raise OutcomeUnknownError(
                f"the directory could not be synced: {error.strerror}",
                do_next="check the disk's health, then start again: the file is read back first",
                path=target,
            ) from error

    def _put_once(self, target: str, data: bytes, publish: Callable[[str, str], object]) -> None:
        temporary, moved = f"{_parent(target)}/{temporary_name()}", False
        try:
            write_new(temporary, data, sync=self.fsync)
            publish(temporary, target)
            moved = publish is os.replace
        finally:
            if not moved:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)  # noqa: PTH108 - text, as _absolute says

    def _make_directory(self, directory: str) -> None:
        """Make a directory with its parents; each entry on the way down from the root is synced, whoever made it."""
        if not self.fsync:
            make_directory(directory, parents=True)
        elif directory not in _durable:
            here = Path(directory)
            if not ((here == self.root or here in self.root.parents) and here.is_dir()):
                self._make_directory(str(here.parent))
                make_directory(directory)
                self._sync(str(here.parent))
            _remember(directory)

    def _sync(self, directory: str | Path) -> None:
        if self.fsync:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def open_local(path: str, options: Mapping[str, str]) -> LocalStorage:
    """A storage on local disk.

    Args:
        path: the root; a relative one counts from the working directory.
        options: ``fsync``, ``true`` (default) or ``false``.

    Raises:
        ConfigError: another option or value, or a file at the root.
    """
    if Path(path).is_file():
        raise ConfigError("a file is where a directory should be", do_next="name a directory", path=path)
    fsync = options.get("fsync", "true").lower()
    if set(options) - {"fsync"} or fsync not in ("true", "false"):
        raise ConfigError(
            "local disk has only the option fsync, true or false",
            do_next="remove or correct the other storage options",
            got=sorted(options),
        )
    return LocalStorage(Path(os.path.abspath(path)), fsync == "true")  # noqa: PTH100 - resolve() would follow links


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _remember(directory: str) -> None:
    with _durable_lock:
        if len(_durable) >= _MAX_KNOWN_DIRECTORIES:
            _durable.clear()
        _durable.add(directory)


def _forget(directory: str) -> None:
    with _durable_lock:
        _durable.difference_update((directory, *map(str, Path(directory).parents)))


def _forget_below(directory: Path) -> None:
    """Directories that were there under a name that is gone must be synced again when they are made anew."""
    below = f"{directory}/"
    with _durable_lock:
        _durable.difference_update([known for known in _durable if f"{known}/".startswith(below)])
