"""The Hudi tables of lakes and the names that the catalog gives them: those that the source has for them now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipeline.decode.changes import SourceTable
from pipeline.errors import BinlakeError, ConfigError
from pipeline.hudi.definition.column_names import lake_name
from pipeline.hudi.table.table import HudiTable
from pipeline.lake.catalog import BrokenTable, catalog_tables, table_paths
from pipeline.lake.names import TableNames
from pipeline.position.record_reader import RecordReader
from pipeline.settings import Settings
from pipeline.storage import Storage, open_storage

#: How deep below the root of a lake without settings its tables are looked for.
_DEPTH = 3
_DEFAULT = "default"
_OWN = ".binlake"


@dataclass(frozen=True)
class NamedTable:
    """A Hudi table, and its database and name in the catalog, in lower case."""

    storage: Storage
    database: str
    name: str

    @property
    def full_name(self) -> str:
        """``database.name``."""
        return f"{self.database}.{self.name}"


@dataclass(frozen=True)
class NamedLake:
    """A lake whose tables are registered.

    Args:
        root: of the lake.
        settings: of the stream that writes it; None for a lake of any writers. Tables of streams are found by their
            names at the source, others by their paths: ``shop/orders`` is ``shop.orders``, ``orders`` is
            ``default.orders``.
    """

    root: Storage
    settings: Settings | None = None

    @classmethod
    def of(cls, settings: Settings) -> NamedLake:
        """The lake of a stream."""
        return cls(open_storage(settings.lake.uri, settings.lake.storage_options()), settings)

    def tables(self, names: Sequence[str] = ()) -> list[NamedTable | BrokenTable]:
        """The tables of these names, or all. One that cannot be opened does not hide the others.

        ``names``: ``database.table`` or a path below the root. Raises StorageError.
        """
        if self.settings is not None:
            known = catalog_tables(self.settings, self.root, names)
            return [t if isinstance(t, BrokenTable) else named(t.storage, t.called) for t in known]
        found = self._by_path(names)
        return list(found)

    def has(self, uri: str) -> bool:
        """Whether a table's root is below the lake's."""
        return uri.startswith(f"{self.root.uri}/")

    def storage(self, uri: str) -> Storage:
        """The root of a table below the lake's."""
        return self.root.sub(uri.removeprefix(f"{self.root.uri}/"))

    def at(self, uri: str) -> NamedTable:
        """The table at a root below the lake's. Raises ConfigError if there is none, CorruptDataError, StorageError."""
        path = uri.removeprefix(f"{self.root.uri}/")
        storage = self.storage(uri)
        if not HudiTable.exists(storage):
            raise ConfigError("there is no Hudi table at this path", do_next="check the path", path=uri)
        stream = self.settings.name if self.settings is not None else None
        return named(storage, self._called(path, storage, [stream] if stream else self._streams()))

    def _by_path(self, names: Sequence[str]) -> Iterator[NamedTable | BrokenTable]:
        streams, missing = self._streams(), list(names)
        for path in table_paths(self.root, _DEPTH):
            try:
                table = named(self.root.sub(path), self._called(path, self.root.sub(path), streams))
            except BinlakeError as error:
                if not names or path in names:
                    yield BrokenTable(path, error)
                continue
            if not names or path in names or table.full_name in names:
                missing = [name for name in missing if name not in (path, table.full_name)]
                yield table
        for name in missing:
            none = ConfigError("the lake has no such table", do_next="check its name and the lake's uri", table=name)
            yield BrokenTable(name, none)

    def _streams(self) -> list[str]:
        return self.root.list_dirs(_OWN)

    def _called(self, path: str, storage: Storage, streams: Sequence[str]) -> SourceTable:
        """The name of the table at a path: as the source calls it now, or else by its path."""
        for stream in streams:
            there = TableNames.load(self.root, stream).at(path)
            if there is not None:
                return there.now
        source = _source(storage)
        if source is not None:
            return source
        database, _, name = path.rpartition("/")
        return SourceTable(database.rpartition("/")[2] or _DEFAULT, name)


def named(storage: Storage, called: SourceTable) -> NamedTable:
    """A table by its name at the source, in the characters that the Hive Metastore allows."""
    return NamedTable(storage, lake_name(called.database).lower(), lake_name(called.table).lower())


def _source(storage: Storage) -> SourceTable | None:
    """The source that a table's commits record; None for a table of another writer."""
    try:
        return RecordReader.newest_of(HudiTable.open(storage)).source
    except BinlakeError:
        return None  # a table that only Hudi writes may have columns that binlake does not read


def chosen(lakes: Iterable[NamedLake], names: Sequence[str]) -> Iterator[list[NamedTable | BrokenTable]]:
    """The tables of these names, or all, lake by lake. A name is broken only if it is in no lake. Raises
    StorageError."""
    unknown: dict[str, BrokenTable] = {}
    known: set[str] = set()
    for lake in lakes:
        tables = lake.tables(names)
        missing = {t.name: t for t in tables if isinstance(t, BrokenTable) and isinstance(t.error, ConfigError)}
        asked = {name: table for name, table in missing.items() if name in names}
        unknown |= asked
        known |= set(names) - asked.keys()
        yield [table for table in tables if not (isinstance(table, BrokenTable) and table.name in asked)]
    yield [table for name, table in unknown.items() if name not in known]
