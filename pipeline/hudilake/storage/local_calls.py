"""Calls of the operating system by local disk: files read and written whole, directories listed, made and removed; its
errors as those of this package, each with what to do next.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from hudilake.errors import ConfigError, LakeError, UnsupportedError
from hudilake.storage.base import AlreadyExistsError, FileInfo, StorageError, StorageNotFoundError
from hudilake.storage.paths import is_temporary, join

_ATTEMPTS = 5
_PART_BYTES = 1 << 20


def make_directory(directory: str, *, parents: bool = False) -> None:
    """Make a directory; with ``parents`` those above it too. It may be there."""
    try:
        Path(directory).mkdir(parents=parents, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, "a file is where a directory should be", directory) from error


def remove_tree(directory: Path) -> None:
    """Remove a directory while others may delete in it, and some still write into it."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            if not _removed_flat(directory):
                shutil.rmtree(directory)
            return
        except OSError as error:
            passes = error.errno in (errno.ENOENT, errno.ENOTEMPTY)
            if not directory.exists():
                return
            if not passes or attempt == _ATTEMPTS:
                raise


def _removed_flat(directory: Path) -> bool:
    """Remove a directory that has files alone, as that of a commit's markers; False, with nothing removed, for any
    other. Errors as ``os.rmdir``."""
    if directory.is_symlink():
        return False
    with os.scandir(directory) as entries:
        files = list(entries)
    if any(entry.is_dir(follow_symlinks=False) for entry in files):
        return False
    for entry in files:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(entry.path)  # noqa: PTH108 - text, as the entry has it
    os.rmdir(directory)  # noqa: PTH106 - as above
    return True


def read_whole(file: str) -> bytes:
    """All bytes of a file; four system calls, of which each lets another thread of Python run."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, size + 1)
        while len(data) != size and (more := os.read(descriptor, _PART_BYTES)):  # a file system may give less at a time
            data += more
        return data
    finally:
        os.close(descriptor)


def write_new(file: str, data: bytes, *, sync: bool) -> None:
    """Write a file that must not exist; with ``sync`` its bytes are on the disk on return."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if sync and data:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def scan(directory: Path) -> Sequence[os.DirEntry[str]]:
    """The entries of a directory but those of half-written files; none if there is no directory."""
    try:
        with os.scandir(directory) as entries:
            return [entry for entry in entries if not is_temporary(entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def info_of_entry(prefix: str, entry: os.DirEntry[str]) -> FileInfo | None:
    """The entry if it is a file and still there."""
    try:
        if entry.is_dir():
            return None
        status = entry.stat()
    except FileNotFoundError:
        return None
    return info_of(join(prefix, entry.name), status)


def info_of(path: str, status: os.stat_result) -> FileInfo:
    """What a status says of the file at ``path``."""
    return FileInfo(path, status.st_size, status.st_mtime_ns // 1_000_000)


@contextlib.contextmanager
def translated(operation: str, root: Path, path: str) -> Iterator[None]:
    """Inside, an error of a call on the file at ``path`` below ``root`` is raised as a LakeError. ``operation``: what
    was to be done, for the message."""
    try:
        yield
    except OSError as error:
        raise _translate(error, operation, f"file://{root / path}") from error


def _translate(error: OSError, operation: str, path: str) -> LakeError:
    message = f"cannot {operation}: {error.strerror or error}"
    if isinstance(error, FileExistsError) and operation == "create":
        return AlreadyExistsError(
            "the file exists already", do_next="another writer created it first: read it", path=path
        )
    if operation == "read" and isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError)):
        return StorageNotFoundError("no such file", do_next="list the directory", path=path)
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return StorageError(message, do_next="free space or raise the quota, then start again", path=path)
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return ConfigError(message, do_next="let this user write to the directory, or name another root", path=path)
        case errno.ENAMETOOLONG | errno.EILSEQ:
            return UnsupportedError(message, do_next="look at the data that the name is made from", path=path)
    return StorageError(message, do_next="check the disk and its mount, then start again", path=path)
