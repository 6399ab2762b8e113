"""What the logs of the catalog hold: changes of names, and changes of a table. Old logs stay readable: fields are added
with a default, and nothing is taken away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

import msgspec

from lakemetastore.model import Column, Database, Partition, Storage, Table

_T = TypeVar("_T")


class ListedTable(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the list of names says of a table: its id, and what listings show. The table's own log has the rest."""

    id: str
    kind: str
    comment: str | None = None


class DatabasePut(msgspec.Struct, frozen=True, tag="database"):
    """A database is new or has another definition."""

    database: Database


class DatabaseDrop(msgspec.Struct, frozen=True, tag="database-dropped"):
    """A database is gone, with the names of its tables."""

    name: str


class TableNames(msgspec.Struct, frozen=True, tag="tables"):
    """Names of tables that go and names that come, at once. Names are ``(database, table)``."""

    gone: tuple[tuple[str, str], ...] = ()
    named: tuple[tuple[str, str, ListedTable], ...] = ()


NameChange = DatabasePut | DatabaseDrop | TableNames


class Storages:
    """Storages of a table's partitions: equal ones are one object, and so are their columns. It only grows."""

    def __init__(self) -> None:
        self._storages: dict[bytes, Storage] = {}
        self._columns: dict[bytes, tuple[Column, ...]] = {}

    def shared(self, storage: Storage) -> Storage:
        """The object that stands for all storages equal to this one."""
        key = msgspec.msgpack.encode(storage)
        shared_storage = self._storages.get(key)
        if shared_storage is None:
            columns = self._columns.setdefault(msgspec.msgpack.encode(storage.columns), storage.columns)
            shared_storage = self._storages.setdefault(key, msgspec.structs.replace(storage, columns=columns))
        return shared_storage


class _DistinctValues(Generic[_T]):
    """Different values in the order in which they came, and the place of each. The caller keeps what it asks for."""

    def __init__(self) -> None:
        self.items: list[_T] = []
        self._by_identity: dict[int, int] = {}
        self._by_content: dict[bytes, int] = {}

    def place(self, item: _T) -> int:
        place = self._by_identity.get(id(item))
        if place is None:
            place = self._by_content.setdefault(msgspec.msgpack.encode(item), len(self.items))
            if place == len(self.items):
                self.items.append(item)
            self._by_identity[id(item)] = place
        return place


class PartitionRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A partition, with the places of its storage and its parameters in the lists beside it."""

    values: tuple[str, ...]
    storage: int
    parameters: int
    location: str | None
    created: int
    last_access: int


class PartitionRows(msgspec.Struct, frozen=True, omit_defaults=True):
    """Partitions; what many of them share is written once."""

    rows: tuple[PartitionRow, ...] = ()
    storages: tuple[Storage, ...] = ()
    parameters: tuple[dict[str, str], ...] = ()

    @staticmethod
    def of(partitions: Iterable[Partition]) -> PartitionRows:
        """The rows of partitions."""
        storages: _DistinctValues[Storage] = _DistinctValues()
        parameters: _DistinctValues[Mapping[str, str]] = _DistinctValues()
        rows = tuple(
            PartitionRow(
                part.values,
                storages.place(part.storage),
                parameters.place(part.parameters),
                part.location,
                part.created,
                part.last_access,
            )
            for part in partitions
        )
        return PartitionRows(
            rows, tuple(storages.items), tuple(dict(parameter_map) for parameter_map in parameters.items)
        )

    def partitions(self, known: Storages) -> list[Partition]:
        """The partitions of the rows."""
        storages = [known.shared(storage) for storage in self.storages]
        shared = self.parameters
        return [
            Partition(r.values, storages[r.storage], r.location, shared[r.parameters], r.created, r.last_access)
            for r in self.rows
        ]


class TableDefinition(msgspec.Struct, frozen=True, omit_defaults=True, tag="table"):
    """The definition of a table. ``cascade``: its partitions get its columns. ``moved_from``: its directory was there,
    so that partitions below it are below the table's location now."""

    table: Table
    cascade: bool = False
    moved_from: str | None = None


class PartitionsChange(msgspec.Struct, frozen=True, omit_defaults=True, tag="partitions"):
    """Partitions that go, by name, and then partitions that come or get another definition. ``renamed``: the name that
    the one dropped partition has now, which keeps its statistics."""

    dropped: tuple[str, ...] = ()
    put: PartitionRows = PartitionRows()
    renamed: str | None = None


class StatisticsPut(msgspec.Struct, frozen=True, omit_defaults=True, tag="statistics"):
    """Statistics of columns as the client sent them; of a partition by its name, of the table by the empty one."""

    partition: str
    columns: dict[str, bytes]


class StatisticsDrop(msgspec.Struct, frozen=True, omit_defaults=True, tag="statistics-dropped"):
    """Statistics that are forgotten: those of one column, or all of the partition or table."""

    partition: str
    column: str | None = None


TableChange = TableDefinition | PartitionsChange | StatisticsPut | StatisticsDrop
