"""The Hudi tables of lakes and the names that the catalog gives them: those that the source has for them now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from binlake.decode.changes import SourceTable
from binlake.position.record_reader import RecordReader
from binlake.settings import Settings
from binlake.tables.catalog import BrokenTable, CatalogTable, catalog_tables, table_paths
from binlake.tables.names import TableNames
from hudilake.errors import BinlakeError, ConfigError
from hudilake.format.definition.column_names import lake_name
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable

#: How deep below the root of a lake without settings its tables are looked for.
_DEPTH = 3
_DEFAULT = "default"
_OWN = ".binlake"


@dataclass(frozen=True)
class NamedTable:
    """A Hudi table, and its database and name in the catalog, in lower case. ``dropped``: the source has it no more."""

    storage: Storage
    database: str
    name: str
    dropped: bool = False

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
        if self.settings is None:
            return apart(self._by_path(names))
        known = catalog_tables(self.settings, self.root, names)
        called = TableNames.load(self.root, self.settings.name)
        return apart(t if isinstance(t, BrokenTable) else self._of_stream(t, called) for t in known)

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
        return self._called(path, [stream] if stream else self._streams())

    def _by_path(self, names: Sequence[str]) -> Iterator[NamedTable | BrokenTable]:
        streams, missing = self._streams(), list(names)
        for path in table_paths(self.root, _DEPTH):
            try:
                table = self._called(path, streams)
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

    def _of_stream(self, table: CatalogTable, called: TableNames) -> NamedTable:
        return named(table.storage, table.called, dropped=called.is_dropped(table.rules.path, table.called))

    def _called(self, path: str, streams: Sequence[str]) -> NamedTable:
        """The table at a path by the name that the source has for it now, or else by its path."""
        storage = self.root.sub(path)
        documents = [TableNames.load(self.root, stream) for stream in streams]
        for document in documents:
            if (there := document.at(path)) is not None:
                return named(storage, there.now, dropped=there.dropped)
        database, _, name = path.rpartition("/")
        now = _source(storage) or SourceTable(database.rpartition("/")[2] or _DEFAULT, name)
        return named(storage, now, dropped=any(document.is_dropped(path, now) for document in documents))


def apart(tables: Iterable[NamedTable | BrokenTable]) -> list[NamedTable | BrokenTable]:
    """The same tables, each with a name of its own: a dropped one gives its name up to one that the source has, and is
    ``t__dropped`` then. Of others with one name the first by place has it, and the rest are broken."""
    listed = list(tables)
    taken: set[str] = set()
    renamed: dict[int, NamedTable | BrokenTable] = {}
    order = ((i, t) for i, t in enumerate(listed) if isinstance(t, NamedTable))
    for place, table in sorted(order, key=lambda one: (one[1].dropped, one[1].storage.uri)):
        known = table
        number = 1
        while known.full_name in taken and table.dropped:
            known = replace(table, name=f"{table.name}__dropped{number if number > 1 else ''}")
            number += 1
        renamed[place] = _clash(known) if known.full_name in taken else known
        taken.add(known.full_name)
    return [renamed.get(place, table) for place, table in enumerate(listed)]


def _clash(table: NamedTable) -> BrokenTable:
    error = ConfigError(
        f"another table of the lake is {table.full_name} in the catalog, which knows no upper case and few characters",
        do_next="rename one of the two at the source, or leave it unregistered",
        table=table.full_name,
        path=table.storage.uri,
    )
    return BrokenTable(table.storage.uri, error)


def named(storage: Storage, called: SourceTable, *, dropped: bool = False) -> NamedTable:
    """A table by its name at the source, in the characters that the Hive Metastore allows."""
    return NamedTable(storage, lake_name(called.database).lower(), lake_name(called.table).lower(), dropped)


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
