"""Tables that must be in the lake, because the stream's ledger says that they have commits; files that must be in a
table, because the table says so.

A table that is gone is never begun anew by itself: its new rows would stand for all of its rows. It stops, and a person
chooses one of the ways out that ``LostTableError`` names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from binlake.decode.changes import SourceTable
from binlake.position.ledger import Ledger
from binlake.position.record_reader import NewestValues, RecordReader
from binlake.settings import Settings
from hudilake.errors import ConfigError, CorruptDataError, LakeError
from hudilake.format.files.view import FileSlice
from hudilake.storage import Storage, StorageNotFoundError
from hudilake.table.table import HudiTable

_WAYS_OUT = (
    "restore its directory from a copy; or fetch it anew (binlake table resync); or give up what is lost, and begin it "
    "anew with the records to come (binlake table forget)"
)
_HOODIE = ".hoodie"
_REMAINS = "restore what is missing from a copy; without one, move the directory away, then fetch the table anew"


class LostTableError(CorruptDataError):
    """The ledger says that a table has commits, and the lake has none of them."""


class LostFileError(CorruptDataError):
    """A table names a file that is not there."""


def judged(storage: Storage, error: LakeError) -> LakeError:
    """What an error says of the table at ``storage``: LostFileError for a file that the table, looked at again, still
    names and that is not there; the error itself for any other. A file that another process has cleaned meanwhile is no
    longer named, so that another attempt succeeds."""
    path = _missing(storage, error)
    if path is None:
        return error
    try:
        if storage.stat(path) is not None:
            return error
        named = any(path in _paths(piece) for piece in HudiTable.open(storage).file_slices())
    except LakeError as again:
        named = _missing(storage, again) == path
    if not named:
        return error
    index = path.startswith(f"{_HOODIE}/metadata/")
    return LostFileError(
        "a file of the table's metadata table is gone" if index else "a file that the table names is gone",
        do_next="run binlake repair, which makes the metadata table anew from the table's files"
        if index
        else "restore the file from a copy; without one, move the table's directory away, then fetch the table anew "
        "(binlake table resync)",
        path=f"{storage.uri}/{path}",
    )


def _missing(storage: Storage, error: LakeError) -> str | None:
    """The path below the table's root of the file that an error did not find; None for another error."""
    path, root = str(error.where.get("path", "")), f"{storage.uri}/"
    return path.removeprefix(root) if isinstance(error, StorageNotFoundError) and path.startswith(root) else None


def _paths(piece: FileSlice) -> Iterator[str]:
    if piece.base_file is not None:
        yield piece.base_file.path
    yield from (file.path for file in piece.log_files)


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table that must be in the lake.

    Args:
        source: the name that its commits record.
        path: its path by the settings.
        was: the path at which the ledger has it.
    """

    source: SourceTable
    path: str
    was: str

    def check_there(self, storage: Storage) -> None:
        """Raise LostTableError if there is no table at ``storage``."""
        if HudiTable.exists(storage):
            return
        if self.path != self.was:
            raise self._lost(
                storage,
                f"the settings give the table another path than before ({self.was}), and there is no table",
                f"move its directory to the new path, or set tables.path back; or {_WAYS_OUT}",
            )
        if is_used(storage):
            raise self._lost(
                storage, "the table's hoodie.properties is gone, and other files of it are there", _REMAINS
            )
        raise self._lost(storage, "the table is gone: the ledger says that it has commits", _WAYS_OUT)

    def check_commits(self, table: NewestValues) -> None:
        """Raise LostTableError if an open table has no commit of a stream, or holds another source table."""
        source = RecordReader.newest_of(table).source
        if source is None:
            what = "the table's commits are gone: its timeline has none, and the ledger says that it has"
            raise self._lost(table.storage, what, _REMAINS)
        if source != self.source:
            what = f"the table at this path holds {source}, not {self.source}, which the ledger has there"
            raise self._lost(table.storage, what, f"move it to its own path, and {_WAYS_OUT}")

    def _lost(self, storage: Storage, what: str, do_next: str) -> LostTableError:
        return LostTableError(what, do_next=do_next, table=str(self.source), path=storage.uri)


def is_used(storage: Storage) -> bool:
    """Whether there is any file at or below a directory. A new table there would mix with it. Raises StorageError."""
    return next(iter(storage.walk("")), None) is not None


def check_free(storage: Storage) -> None:
    """Raise ConfigError if there are data files where a table is to be created: they would become rows of it. A run
    that died while it created the table leaves files below ``.hoodie`` only."""
    data_file = next((file.path for file in storage.walk("") if not file.path.startswith(f"{_HOODIE}/")), None)
    if data_file is not None:
        raise ConfigError(
            "there are files where the new table would be, and no hoodie.properties",
            do_next="move them away; or restore hoodie.properties from a copy if they are those of a table",
            path=storage.uri,
            file=data_file,
        )


def known_tables(settings: Settings, ledger: Ledger) -> Iterator[KnownTable]:
    """The tables that must be in the lake. A wide table need not be there: it is
    derived again, whole."""
    for source, was in ledger.tables.items():
        rules = settings.table_rules(source)
        if rules.wide is None:
            yield KnownTable(source, rules.path, was)


def check_known(settings: Settings, root: Storage, ledger: Ledger, table: SourceTable) -> None:
    """Raise LostTableError if the ledger knows a table that is not in the lake. Raises LakeError if it cannot be
    opened."""
    known = next((one for one in known_tables(settings, ledger) if one.source == table), None)
    if known is not None:
        storage = root.sub(known.path)
        known.check_there(storage)
        known.check_commits(HudiTable.open(storage))
