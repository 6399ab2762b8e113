"""Registers Hudi tables in the catalog: their Hive tables with their partitions, and the names that the source gives.

Everything here may be done again at any time, by several processes at once; what is there already is left as it is. A
crash leaves what the next registration completes: a Hive table comes before its partitions, and the note of a name
(``LakeState.named``) after the name.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from hudilake.clock import new_uuid
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.catalog.locations import same_place
from lakemetastore.catalog.logs import TableEntry
from lakemetastore.catalog.names import TableName
from lakemetastore.errors import AlreadyExistsError, InvalidOperationError, NoSuchObjectError
from lakemetastore.lake.hive_differences import partition_differences, same_but_place, same_definition
from lakemetastore.lake.hive_tables import READ_OPTIMIZED, REALTIME, HiveTable, HiveTables
from lakemetastore.lake.lake_tables import LakeTables
from lakemetastore.lake.naming import NamedTable
from lakemetastore.lake.opened import OpenedTable
from lakemetastore.lake.state import LakeState
from lakemetastore.model import Database, Table

#: Partitions of one change of a table's log.
_BATCH: Final = 10_000
_ATTEMPTS: Final = 3
SUFFIXES: Final = ("", READ_OPTIMIZED, REALTIME)
_SPARK = "spark.sql.sources."
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RegistrationResult:
    """What a registration changed.

    ``created``, ``altered``: names of Hive tables. ``added``, ``dropped``: how many of their partitions.
    """

    created: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    added: int = 0
    dropped: int = 0

    @property
    def changed(self) -> bool:
        """Whether anything was."""
        return bool(self.created or self.altered or self.added or self.dropped)

    def with_(self, other: RegistrationResult) -> RegistrationResult:
        """Both together."""
        return RegistrationResult(
            self.created + other.created,
            self.altered + other.altered,
            self.added + other.added,
            self.dropped + other.dropped,
        )


@dataclass(frozen=True)
class Registration:
    """Registers tables in a catalog.

    Args:
        catalog: where the Hive tables are.
        lakes: where the states of the Hudi tables are.
        timestamps: see ``HiveTables``.
    """

    catalog: Catalog
    lakes: LakeTables
    timestamps: bool = False

    def register(self, table: NamedTable) -> RegistrationResult:
        """Take a table's timeline in, and bring its Hive tables up to it.

        Raises AlreadyExistsError if another table has its name, ConfigError if there is no Hudi table,
        CorruptDataError, StorageError.
        """
        state = self.lakes.take_in(table.storage).state
        self.rename([table])
        wanted = list(self.wanted(table, state))
        self._check_place(table, state, wanted)
        self._make(table.database)
        result = RegistrationResult()
        for hive in wanted:
            result = result.with_(self._settle(hive))
        self.lakes.name(table.storage.uri, table.database, table.name)
        return result

    def wanted(self, table: NamedTable, state: LakeState) -> Iterator[HiveTable]:
        """The Hive tables that a table in a state should have. Errors as ``HiveTables.tables``."""
        opened = OpenedTable.open(table.storage)
        return HiveTables(opened, table.database, table.name, self.timestamps).tables(state.seen())

    def rename(self, tables: Iterable[NamedTable]) -> int:
        """Give registered tables the names that they should have, all in one version of the catalog, swaps and cycles
        too; returns how many Hive tables got another name. Tables that were never registered are left out.

        Raises AlreadyExistsError if a name is taken by a table that is none of these, NoSuchObjectError if others
        rename them all the time, StorageError.
        """
        wanted = list(tables)
        for attempt in range(_ATTEMPTS):
            moved, moves, ids = self._moves(wanted)
            for database in sorted({new for new, _ in moves.values()}):
                self._make(database)
            try:
                if moves:
                    self.catalog.tables.swap_names(moves, ids)
            except NoSuchObjectError:  # another process has given them their names since they were looked up
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            for table in moved:
                self.lakes.name(table.storage.uri, table.database, table.name)
            break
        return len(moves)

    def _moves(
        self, tables: Iterable[NamedTable]
    ) -> tuple[list[NamedTable], dict[TableName, TableName], dict[TableName, str]]:
        """The tables that were registered by another name, the new name of each of their Hive tables by its old one,
        and the ids of those by their old names."""
        moved: list[NamedTable] = []
        moves: dict[TableName, TableName] = {}
        ids: dict[TableName, str] = {}
        for table in tables:
            state = self.lakes.state(table.storage.uri).state
            if state.named in (None, (table.database, table.name)):
                continue
            moved.append(table)
            for suffix, entry in self._hive_tables(state):
                old = entry.table.database, entry.table.name
                moves[old], ids[old] = (table.database, table.name + suffix), entry.id
        return moved, moves, ids

    def drop(self, state: LakeState) -> list[str]:
        """Drop the Hive tables of a table that is no more, and forget its state; returns their names. Files stay.

        Raises NoSuchObjectError if another process drops them, StorageError.
        """
        dropped = []
        for _, entry in self._hive_tables(state):
            self.catalog.tables.drop(entry.table.database, entry.table.name)
            dropped.append(f"{entry.table.database}.{entry.table.name}")
        self.lakes.forget(state.uri)
        return dropped

    def _hive_tables(self, state: LakeState) -> Iterator[tuple[str, TableEntry]]:
        """The Hive tables at the table's place by the name under which it was registered, with their suffixes."""
        if state.named is None:
            return
        database, name = state.named
        for suffix in SUFFIXES:
            entry = self._entry(database, name + suffix)
            if entry is not None and same_place(entry.table.location, state.uri):
                yield suffix, entry

    def _make(self, database: str) -> None:
        if database not in self.catalog.databases.names():
            with contextlib.suppress(AlreadyExistsError):  # another process was first
                self.catalog.databases.create(Database(database))

    def _entry(self, database: str, name: str) -> TableEntry | None:
        try:
            return self.catalog.tables.get(database, name)
        except NoSuchObjectError:
            return None

    def _check_place(self, table: NamedTable, state: LakeState, wanted: Iterable[HiveTable]) -> None:
        """Raise AlreadyExistsError if a table of another place has one of the names. One that was registered by its
        name, and that is otherwise as it should be, is ours: somebody gave it another location."""
        known = state.named == (table.database, table.name)
        ours = {hive.table.name: hive.table for hive in wanted} if known else {}
        for suffix in SUFFIXES:
            entry = self._entry(table.database, table.name + suffix)
            if entry is None or same_place(entry.table.location, table.storage.uri):
                continue
            mine = ours.get(table.name + suffix)
            if mine is None or not same_but_place(entry.table, mine):
                raise AlreadyExistsError(
                    f"the catalog has a table {table.database}.{table.name}{suffix} of another place",
                    do_next="drop that table, or give one of the two another name",
                    table=f"{table.database}.{table.name}",
                    location=entry.table.location,
                )

    def _settle(self, hive: HiveTable) -> RegistrationResult:
        database, name = hive.table.database, hive.table.name
        entry = self._entry(database, name)
        created: tuple[str, ...] = ()
        altered: tuple[str, ...] = ()
        if entry is None:
            with contextlib.suppress(AlreadyExistsError):  # another process was first
                self.catalog.tables.create(hive.table)
                created = (f"{database}.{name}",)
            entry = self.catalog.tables.get(database, name)
        if not same_definition(entry.table, hive.table):
            self._alter(entry.table, hive)
            altered = (f"{database}.{name}",)
            entry = self.catalog.tables.get(database, name)
        partition_changes = partition_differences(entry, hive.partitions)
        for batch in _batches(partition_changes.missing):
            self.catalog.partitions.add_all(database, name, batch, if_not_exists=True)
        for names in _batches(partition_changes.surplus):
            self.catalog.partitions.drop(database, name, names, if_exists=True)
        for batch in _batches(partition_changes.changed):
            self.catalog.partitions.alter_all(database, name, batch)
        if partition_changes.changed and not altered:
            altered = (f"{database}.{name}",)
        return RegistrationResult(created, altered, len(partition_changes.missing), len(partition_changes.surplus))

    def _alter(self, known: Table, hive: HiveTable) -> None:
        """Give a Hive table its definition. Where the Metastore refuses the change, a new table with all partitions
        takes its place, in one step."""
        others = {key: value for key, value in known.parameters.items() if not key.startswith(_SPARK)}
        parameters = {**others, **hive.table.parameters}
        new = msgspec.structs.replace(hive.table, parameters=parameters, owner=known.owner)
        try:
            self.catalog.tables.alter(known.database, known.name, new, cascade=True)
        except InvalidOperationError:
            mark = new_uuid()[:8]
            fresh, old = f"{known.name}__new_{mark}", f"{known.name}__old_{mark}"
            home = known.database
            self.catalog.tables.create(msgspec.structs.replace(new, name=fresh))
            for batch in _batches(hive.partitions):
                self.catalog.partitions.add_all(home, fresh, batch)
            self.catalog.tables.swap_names({(home, known.name): (home, old), (home, fresh): (home, known.name)})
            self.catalog.tables.drop(home, old)


def _batches(items: Sequence[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, _BATCH)):
        yield batch
