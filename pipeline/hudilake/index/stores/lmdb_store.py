"""Index entries in LMDB: files on this machine, which all its processes share."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import lmdb

from hudilake.storage.base import StorageError

_FIRST_BYTES: Final = 1 << 30
_READERS: Final = 512
#: LMDB must not be opened twice by one process (its documentation).
_open: dict[str, lmdb.Environment] = {}
_guard = threading.Lock()


class LmdbStore:
    """A directory of an LMDB environment (see ``base.KeyValueStore``). The file grows as it fills.

    Args:
        path: the directory, made if there is none.
    """

    def __init__(self, path: str) -> None:
        self._path = str(Path(path).absolute())

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Returns the values of n keys at one moment, in their order, None for none. Raises StorageError."""
        try:
            with self._environment().begin() as transaction, transaction.cursor() as cursor:
                values = dict(cursor.getmulti(keys))
                return [values.get(key) for key in keys]
        except lmdb.MapResizedError:
            self._environment().set_mapsize(0)
            return self.get_many(keys)
        except lmdb.Error as error:
            raise self._failed("read", error) from error

    def put_many(self, entries: Mapping[bytes, bytes]) -> None:
        """Writes all entries or none, over those that there are. Raises StorageError."""
        try:
            with self._environment().begin(write=True) as transaction, transaction.cursor() as cursor:
                cursor.putmulti(sorted(entries.items()))
        except lmdb.MapFullError:
            self._environment().set_mapsize(2 * self._environment().info()["map_size"])
            self.put_many(entries)
        except lmdb.MapResizedError:
            self._environment().set_mapsize(0)
            self.put_many(entries)
        except lmdb.Error as error:
            raise self._failed("write", error) from error

    def _environment(self) -> lmdb.Environment:
        with _guard:
            if self._path not in _open:
                try:
                    Path(self._path).mkdir(parents=True, exist_ok=True)
                    _open[self._path] = lmdb.open(self._path, map_size=_FIRST_BYTES, max_readers=_READERS)
                except (lmdb.Error, OSError) as error:
                    raise self._failed("open", error) from error
            return _open[self._path]

    def _failed(self, operation: str, error: Exception) -> StorageError:
        return StorageError(
            f"LMDB cannot {operation} the index: {error}",
            do_next="look at the disk; if the files are damaged, delete them: the index is read from the table again",
            path=self._path,
        )
