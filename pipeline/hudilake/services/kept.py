"""What a repair takes away or replaces stays in the table, and can be put back.

``.hoodie/.repairs/<time>/was/<path>.kept`` is a file as it was before the repair; ``.../new/<path>.kept``, empty, says
that there was none. Readers do not look there: data files below ``.hoodie`` are in no partition. A file is kept before
it is changed, so a repair that dies at any call can be taken back too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from hudilake.errors import ConfigError
from hudilake.format.files.names import REPAIRS_PATH
from hudilake.format.timeline.instant import TIMELINE_PATH, parse_name
from hudilake.locking.fenced import fenced
from hudilake.locking.ownership import Locking, Ownership
from hudilake.storage.base import AlreadyExistsError, FileInfo, Storage, UnfinishedWrites
from hudilake.storage.passing import PassingStorage
from hudilake.storage.paths import dir_path, join
from hudilake.wording import counted

#: Behind every name, so that a half-written file is listed and nothing is taken for a file of a partition.
_SUFFIX = ".kept"
_TIMELINES = (TIMELINE_PATH, f".hoodie/metadata/{TIMELINE_PATH}")


@dataclass(frozen=True, slots=True)
class RepairFolder:
    """The files that one repair took away or replaced. ``name``: when it began."""

    storage: Storage
    name: str
    _seen: set[str] = field(default_factory=set)

    @property
    def path(self) -> str:
        """Relative to the table's root."""
        return f"{REPAIRS_PATH}/{self.name}"

    @property
    def is_used(self) -> bool:
        """Whether this repair has changed a file so far."""
        return bool(self._seen)

    def keep(self, path: str) -> None:
        """Keep a file as it is, before its first change by this repair."""
        if path in self._seen:
            return
        if self.storage.stat(path) is None:
            self.storage.write(f"{self.path}/new/{path}{_SUFFIX}", b"")
        else:
            self.storage.write(f"{self.path}/was/{path}{_SUFFIX}", self.storage.read(path))
        self._seen.add(path)

    def forget(self, path: str) -> None:
        """A file that this repair did not create after all: another process did."""
        self.storage.delete(f"{self.path}/new/{path}{_SUFFIX}")
        self._seen.discard(path)

    def paths(self, part: str) -> list[str]:
        """The paths below ``was`` or ``new``, sorted."""
        root = f"{self.path}/{part}/"
        relative = (info.path[len(root) :] for info in self.storage.walk(root))
        return sorted(path.removesuffix(_SUFFIX) for path in relative if path.endswith(_SUFFIX))

    def put_back(self) -> int:
        """Make every file again what it was; returns their number. Repeatable."""
        made, former = self.paths("new"), self.paths("was")
        for path in made:
            self.storage.delete(path)
        for path in former:
            self.storage.write(path, self.storage.read(f"{self.path}/was/{path}{_SUFFIX}"))
        self.storage.delete_tree(self.path)
        return len(made) + len(former)


@dataclass(frozen=True, slots=True)
class KeepingStorage(PassingStorage):
    """A storage that keeps what it deletes and replaces, and notes what it creates.

    Args:
        inner: the storage behind it.
        folder: where it is kept, in the table.
        root: path of the storage's root below the table's.
    """

    folder: RepairFolder
    root: str = ""

    def create(self, path: str, data: bytes) -> None:
        """Create a file; the folder forgets it again if another process was first."""
        known = self.inner.stat(path) is not None
        if not known:
            self.folder.keep(join(self.root, path))
        try:
            self.inner.create(path, data)
        except AlreadyExistsError:
            if not known:
                self.folder.forget(join(self.root, path))
            raise

    def write(self, path: str, data: bytes) -> None:
        """Keep what the path has, then replace it."""
        self.folder.keep(join(self.root, path))
        self.inner.write(path, data)

    def delete(self, path: str) -> bool:
        """Keep the file, then delete it."""
        if self.inner.stat(path) is not None:
            self.folder.keep(join(self.root, path))
        return self.inner.delete(path)

    def delete_tree(self, prefix: str) -> None:
        """Keep every file below, then delete them."""
        for info in self._all(prefix):
            self.folder.keep(join(self.root, info.path))
        self.inner.delete_tree(prefix)

    def sub(self, path: str) -> Storage:
        """The same store with its root further down, keeping into the same folder."""
        return keeping(self.inner.sub(path), self.folder, join(self.root, dir_path(path)))

    def _all(self, prefix: str) -> Iterator[FileInfo]:
        yield from self.inner.walk(prefix)
        if isinstance(self.inner, UnfinishedWrites):
            yield from self.inner.unfinished(prefix)


@dataclass(frozen=True, slots=True)
class _KeepingUnfinishedWrites(KeepingStorage):
    """Over a store that leaves half-written files."""

    def unfinished(self, prefix: str) -> Iterator[FileInfo]:
        """The half-written files of the inner storage."""
        return cast("UnfinishedWrites", self.inner).unfinished(prefix)


def keeping(storage: Storage, folder: RepairFolder, root: str = "") -> KeepingStorage:
    """A storage at ``root`` below the table's that keeps into a folder."""
    kind = _KeepingUnfinishedWrites if isinstance(storage, UnfinishedWrites) else KeepingStorage
    return kind(storage, folder, root)


def take_back(storage: Storage, locking: Locking | None = None) -> str:
    """Undo the newest repair of a table: every file is again what it was. Returns what was done, one line.

    Args:
        storage: the table's root. No writer may run.
        locking: the lock settings; the table's lock is held until the end.

    Raises ConfigError if there is none, or a writer has gone on from it; LockHeldError, StorageError.
    """
    ownership = Ownership(storage, locking)
    with ownership.lock:
        names = fenced(storage, ownership.lock).list_dirs(REPAIRS_PATH)
        if not names:
            raise ConfigError("no repair of this table can be taken back", do_next="nothing", path=REPAIRS_PATH)
        folder = RepairFolder(storage, names[-1])
        _check_nothing_since(folder)
        back = counted(folder.put_back(), "file", "is as it was", "are as they were")
        return f"took back the repair of {folder.name}: {back}"


def _check_nothing_since(folder: RepairFolder) -> None:
    """Later commits build on the repaired table: its former metadata table, or a commit's file, would hide them."""
    made = set(folder.paths("new"))
    for directory in _TIMELINES:
        for info in folder.storage.list(directory):
            instant = parse_name(info.path.rpartition("/")[2])
            if instant is None or info.path in made:
                continue
            if (instant.completion_time or instant.requested_time) > folder.name:
                raise ConfigError(
                    "the table was written to after its repair, so the repair is not taken back as a whole",
                    do_next=f"copy single files back from {folder.path}/was by hand",
                    instant=instant.requested_time,
                )
