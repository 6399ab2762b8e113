"""The proof: all bytes of a table's directory are read, decompressed, and tell nothing of the rows.

A text that rows which stay have, too, proves nothing: it is among the values of rows that have other keys. Such texts
are counted and left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hudilake.errors import CorruptDataError
from hudilake.services.erasure.traces import Quarry, Trace, traces
from hudilake.storage.base import FileInfo, Storage, StorageNotFoundError, UnfinishedWrites


@dataclass
class ByteScan:
    """What the scan of a table's directory has found.

    Args:
        files, size: how many were read, and their bytes.
        finds: path -> what it tells of the rows; empty if nothing is left.
        shared: how many texts rows that stay have, too: of these nothing is said.
        unread: path -> why a file could not be taken apart.
    """

    files: int = 0
    size: int = 0
    finds: dict[str, list[Trace]] = field(default_factory=dict)
    shared: int = 0
    unread: dict[str, str] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        """Whether every file was read, and none tells anything."""
        return not self.finds and not self.unread


def every_file(storage: Storage) -> Iterator[FileInfo]:
    """All files of a table's directory, half-written ones among them."""
    yield from storage.walk("")
    if isinstance(storage, UnfinishedWrites):
        yield from storage.unfinished("")


def scan(storage: Storage, quarry: Quarry, besides: str = "") -> ByteScan:
    """Read every file below a root, one at a time, half-written ones too. Raises StorageError.

    Args:
        storage: the root: of a table, or of any directory.
        quarry: what must not be there.
        besides: a file that is passed over: the record that names what is looked for.
    """
    done = ByteScan()
    for info in every_file(storage):
        if info.path == besides:
            continue
        try:
            data = storage.read(info.path)
            done.files, done.size = done.files + 1, done.size + len(data)
            if seen := traces(data, quarry):
                done.finds[info.path] = seen
        except StorageNotFoundError:
            continue  # cleaned meanwhile: a later file has what it had
        except CorruptDataError as error:
            done.unread[info.path] = error.what
    return _without_shared(done)


def _without_shared(done: ByteScan) -> ByteScan:
    """Leave out the texts that stand in rows of files without any of the keys: other rows have them."""
    keyed = {path for path, seen in done.finds.items() if any(trace.text is None for trace in seen)}
    shared = {
        trace.text
        for path, seen in done.finds.items()
        if path not in keyed
        for trace in seen
        if trace.in_rows and trace.text is not None
    }
    left = {path: [trace for trace in seen if trace.text not in shared] for path, seen in done.finds.items()}
    done.finds, done.shared = {path: seen for path, seen in left.items() if seen}, len(shared)
    return done
