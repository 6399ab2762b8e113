"""What a dump file was before records of it were emptied: a replay takes its versions for one file.

Commits name the files of a replay by path, size and time of change (``DumpFile.identity``). A note beside the dumps,
``_binlake/versions/<hash of the path>.json``, has the versions of a file that an erasure has written, oldest first, and
the hash of the bytes of each. It is written before the file: after a death the file's bytes say which version it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from binlake.source.dump_layout import DumpFile
from hudilake.errors import CorruptDataError
from hudilake.storage.base import Storage, StorageNotFoundError

_FOLDER = "_binlake/versions"


class DumpVersion(msgspec.Struct, frozen=True):
    """A version of a dump file. ``size`` in bytes; ``digest``: of its bytes; ``modified_ms``: the time of its change in
    ms since 1970; None of a version that was not looked at since it was written."""

    size: int
    digest: str
    modified_ms: int | None = None


class _Note(msgspec.Struct):
    path: str
    versions: list[DumpVersion]

    def up_to(self, digest: str) -> list[DumpVersion]:
        """The versions up to the newest one of this digest; none if no version has it."""
        last = max((n for n, one in enumerate(self.versions) if one.digest == digest), default=-1)
        return self.versions[: last + 1]


def rewrite(storage: Storage, file: DumpFile, before: bytes, after: bytes) -> None:
    """Replace a dump file by a version without some records.

    Args:
        storage: the dump's root.
        file: as it is now.
        before: its bytes.
        after: the new bytes.

    Raises CorruptDataError for a note that cannot be read, StorageError. After an error the same call goes on.
    """
    now = DumpVersion(file.size, _digest(before), file.modified_ms)
    note = _note(storage, file.path)
    earlier = note.up_to(now.digest)[:-1] if note is not None else []
    versions = [*earlier, now, DumpVersion(len(after), _digest(after))]
    storage.write(_path(file.path), msgspec.json.format(msgspec.json.encode(_Note(file.path, versions)), indent=1))
    storage.write(file.path, after)


def earlier_identities(storage: Storage, file: DumpFile) -> Iterator[tuple[str, int, int]]:
    """The identities that a file had before an erasure wrote it; none for a file with other bytes, or without a note.
    Reads the file if there is a note. Raises CorruptDataError, StorageError."""
    note = _note(storage, file.path)
    if note is not None:
        for version in note.up_to(_digest(storage.read(file.path))):
            if version.modified_ms is not None:
                yield file.path, version.size, version.modified_ms


def _note(storage: Storage, path: str) -> _Note | None:
    try:
        return msgspec.json.decode(storage.read(_path(path)), type=_Note)
    except StorageNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise CorruptDataError(
            f"the note on the versions of a dump file cannot be read: {error}",
            do_next="restore it from a copy; or delete it, and replays refuse the file as one that was written again",
            path=_path(path),
        ) from error


def _path(path: str) -> str:
    return f"{_FOLDER}/{hashlib.blake2b(path.encode(), digest_size=16).hexdigest()}.json"


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
