"""Who names the tables of a lake: what its writer knows of their source, or else their paths.

A stream of binlake knows what the source calls a table now, so binlake names the tables of its lakes, by the entry
point ``binlake`` of the group ``lakemetastore.naming``. Without binlake such a lake is refused: by their paths its
tables would silently get other names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Final, Protocol, cast

from hudilake.errors import ConfigError, LakeError
from hudilake.format.definition.column_names import lake_name
from hudilake.storage import Storage, StorageError
from hudilake.table.directory import BrokenTable, paths_of_tables
from hudilake.table.table import HudiTable

GROUP: Final = "lakemetastore.naming"
#: Directories of a lake in which binlake's streams keep what is not a table of their source.
STREAMS: Final = ".binlake"
RESERVED: Final = (STREAMS, "_quarantine")
_STREAM_KEY: Final = "binlake.stream"
#: How deep below the root of a lake its tables are looked for.
_DEPTH = 3
_DEFAULT = "default"


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

    @classmethod
    def of(cls, storage: Storage, database: str, name: str, *, dropped: bool = False) -> NamedTable:
        """A table by its names at the source, in the characters that the Hive Metastore allows."""
        return cls(storage, lake_name(database).lower(), lake_name(name).lower(), dropped)

    @classmethod
    def by_path(cls, root: Storage, path: str) -> NamedTable:
        """A table by its path, as ``names_of_path``."""
        return cls.of(root.sub(path), *names_of_path(path))


def names_of_path(path: str) -> tuple[str, str]:
    """Database and name: ``shop/orders`` is ``shop.orders``, ``orders`` is ``default.orders``."""
    database, _, name = path.rpartition("/")
    return database.rpartition("/")[2] or _DEFAULT, name


class TableNaming(Protocol):
    """Names the tables of one lake."""

    def tables(self, names: Sequence[str]) -> Iterable[NamedTable | BrokenTable]:
        """The tables of these names, or all. ``names``: ``database.table`` or a path below the root. Raises
        StorageError."""
        ...

    def table(self, path: str) -> NamedTable:
        """The table at a path below the root. Raises ConfigError, CorruptDataError, StorageError."""
        ...


class StreamNaming(Protocol):
    """What the entry point ``binlake`` gives."""

    def by_settings(self, file: str) -> tuple[Storage, TableNaming]:
        """The root of the lake that the stream of a settings file writes, and its naming. Raises ConfigError."""
        ...

    def of_lake(self, root: Storage) -> TableNaming:
        """The naming of a lake in which streams and others write."""
        ...


def naming_by_settings(file: str) -> tuple[Storage, TableNaming]:
    """The root and the naming of a stream's lake. Raises ConfigError, as well if binlake is not installed."""
    installed = _installed()
    if installed is None:
        raise _refusal("these are the settings of a stream of binlake", path=file)
    return installed.by_settings(file)


def naming_of_lake(root: Storage) -> TableNaming:
    """The naming of a lake of any writers. Raises ConfigError if streams write it and binlake is not installed."""
    installed = _installed()
    if installed is not None:
        return installed.of_lake(root)
    naming = PathNaming(root)
    with suppress(StorageError):  # a lake that does not answer is looked at again in each round
        naming.check_lake()
    return naming


@dataclass(frozen=True)
class PathNaming:
    """Names tables by their paths, and refuses those that a stream of binlake writes."""

    root: Storage

    def check_lake(self) -> None:
        """Raises ConfigError if a stream keeps its state in the lake, StorageError."""
        if STREAMS in self.root.list_dirs(""):
            raise _refusal("a stream of binlake writes this lake", path=self.root.uri)

    def tables(self, names: Sequence[str]) -> Iterator[NamedTable | BrokenTable]:
        """The tables of these names, or all. Raises ConfigError as ``check_lake``, StorageError."""
        self.check_lake()
        return tables_below(self.root, names, self.table)

    def table(self, path: str) -> NamedTable:
        """The table at a path. Raises ConfigError if a stream of binlake has written it, CorruptDataError,
        StorageError."""
        if _of_stream(self.root.sub(path)):
            raise _refusal("a stream of binlake writes this table", path=f"{self.root.uri}/{path}")
        return NamedTable.by_path(self.root, path)


def tables_below(
    root: Storage, names: Sequence[str], name_of: Callable[[str], NamedTable]
) -> Iterator[NamedTable | BrokenTable]:
    """The tables of these names below a lake's root, or all.

    Args:
        root: the lake's.
        names: ``database.table`` or paths.
        name_of: names the table at a path; an error makes this table a broken one.
    """
    missing = list(names)
    for path in paths_of_tables(root, _DEPTH, RESERVED):
        try:
            table = name_of(path)
        except LakeError as error:
            if not names or path in names:
                missing = [name for name in missing if name != path]
                yield BrokenTable(path, error)
            continue
        if not names or path in names or table.full_name in names:
            missing = [name for name in missing if name not in (path, table.full_name)]
            yield table
    for name in missing:
        none = ConfigError("the lake has no such table", do_next="check its name and the lake's uri", table=name)
        yield BrokenTable(name, none)


def _installed() -> StreamNaming | None:
    for point in entry_points(group=GROUP, name="binlake"):
        return cast(StreamNaming, point.load())
    return None


def _refusal(what: str, path: str) -> ConfigError:
    return ConfigError(
        f"{what}, which names its tables, and binlake is not installed", do_next="pip install binlake", path=path
    )


def _of_stream(storage: Storage) -> bool:
    try:
        return HudiTable.open(storage).extra_metadata(_STREAM_KEY) is not None
    except LakeError:
        return False  # a table that only Hudi writes may have columns that no stream writes
