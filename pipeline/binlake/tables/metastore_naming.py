"""What the metastore calls the tables of lakes that streams write: the names that the source has for them now.

The metastore asks it by the entry point ``binlake`` of the group ``lakemetastore.naming``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from binlake.decode.changes import SourceTable
from binlake.position.record_reader import RecordReader
from binlake.settings import Settings
from binlake.tables.catalog import catalog_tables
from binlake.tables.names import TableNames
from hudilake.errors import LakeError
from hudilake.storage import Storage, open_storage
from hudilake.table.directory import BrokenTable
from hudilake.table.table import HudiTable
from lakemetastore.lake.naming import STREAMS, NamedTable, TableNaming, names_of_path, tables_below


@dataclass(frozen=True)
class LakeNaming:
    """The names of a lake in which streams and others write: at the source if a stream writes a table, else by path."""

    root: Storage

    def tables(self, names: Sequence[str]) -> Iterator[NamedTable | BrokenTable]:
        """The tables of these names, or all. Raises StorageError."""
        streams = self._streams()
        return tables_below(self.root, names, lambda path: _named(self.root, path, streams))

    def table(self, path: str) -> NamedTable:
        """The table at a path. Raises CorruptDataError, StorageError."""
        return _named(self.root, path, self._streams())

    def _streams(self) -> list[str]:
        return self.root.list_dirs(STREAMS)


@dataclass(frozen=True)
class SettingsNaming:
    """The names of the lake of one stream, of those of its tables that its settings place there."""

    root: Storage
    settings: Settings

    def tables(self, names: Sequence[str]) -> Iterator[NamedTable | BrokenTable]:
        """The tables of these names, or all. Raises CorruptDataError, StorageError."""
        document = TableNames.load(self.root, self.settings.name)
        for table in catalog_tables(self.settings, self.root, names):
            if isinstance(table, BrokenTable):
                yield table
                continue
            dropped = document.is_dropped(table.rules.path, table.called)
            yield NamedTable.of(table.storage, table.called.database, table.called.table, dropped=dropped)

    def table(self, path: str) -> NamedTable:
        """The table at a path. Raises CorruptDataError, StorageError."""
        return _named(self.root, path, [self.settings.name])


class Naming:
    """The entry point: namings by a stream's settings file, and for lakes of any writers."""

    def by_settings(self, file: str) -> tuple[Storage, TableNaming]:
        """The root and the naming of a stream's lake. Raises ConfigError, SettingsError."""
        settings = Settings.load(file)
        root = open_storage(settings.lake.uri, settings.lake.storage_options())
        return root, SettingsNaming(root, settings)

    def of_lake(self, root: Storage) -> TableNaming:
        """The naming of a lake of any writers."""
        return LakeNaming(root)


NAMING = Naming()


def _named(root: Storage, path: str, streams: Sequence[str]) -> NamedTable:
    """The table at a path by the name that the source has for it now, or else by its path."""
    storage = root.sub(path)
    documents = [TableNames.load(root, stream) for stream in streams]
    for document in documents:
        if (there := document.at(path)) is not None:
            return NamedTable.of(storage, there.now.database, there.now.table, dropped=there.dropped)
    source = _source(storage) or SourceTable(*names_of_path(path))
    dropped = any(document.is_dropped(path, source) for document in documents)
    return NamedTable.of(storage, source.database, source.table, dropped=dropped)


def _source(storage: Storage) -> SourceTable | None:
    """The source that a table's commits record; None for a table of another writer."""
    try:
        return RecordReader.newest_of(HudiTable.open(storage)).source
    except LakeError:
        return None  # a table that only Hudi writes may have columns that binlake does not read
