"""Partitions of a catalog's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from hudilake.clock import now_ms
from lakemetastore.catalog.claims import scattered
from lakemetastore.catalog.entries import PartitionRows, PartitionsChange, TableChange
from lakemetastore.catalog.filters.evaluate import matching
from lakemetastore.catalog.filters.syntax import parse
from lakemetastore.catalog.locations import comparable, normal_location, partition_location, same_place
from lakemetastore.catalog.logs import CatalogLogs, TableEntry
from lakemetastore.catalog.names import folded, namer, partition_name, partition_spec, qualified
from lakemetastore.catalog.partitions import Positions
from lakemetastore.catalog.stored import EXTERNAL, altered_partition, stored_partition
from lakemetastore.catalog.table_state import TableState
from lakemetastore.errors import (
    AlreadyExistsError,
    CatalogError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from lakemetastore.model import Partition, Table

_replace = msgspec.structs.replace


class PartitionCalls:
    """The calls about partitions. See ``Catalog``."""

    def __init__(self, logs: CatalogLogs) -> None:
        self._logs = logs

    def get(self, entry: TableEntry, values: Sequence[str]) -> Partition:
        """The partition of some values; it has them as they were asked for, the empty text for the default partition.

        Raises NoSuchObjectError, MetaError for too few or too many values.
        """
        partition = entry.partitions.named(partition_name(entry.table.partition_keys, values))
        if partition is None:
            raise _missing(values)
        return partition if partition.values == tuple(values) else _replace(partition, values=tuple(values))

    def named(self, entry: TableEntry, name: str) -> Partition:
        """The partition of a name, whose parts may stand in any order. Raises NoSuchObjectError, MetaError."""
        try:
            return self.get(entry, values_of_name(entry.table, name))
        except InvalidObjectError as error:
            raise NoSuchObjectError(error.what) from error

    def matching(self, entry: TableEntry, condition: str) -> Positions:
        """The positions of the partitions that meet a condition, ascending. Raises MetaError."""
        return matching(parse(condition), entry.partitions.columns, len(entry.partitions))

    def having(self, entry: TableEntry, values: Sequence[str]) -> Positions:
        """The positions of the partitions with some values of their first keys, ascending; an empty value is any.

        Raises MetaError for no values and for more values than keys.
        """
        keys = entry.table.partition_keys
        if len(values) > len(keys):
            shown = ", ".join(values)
            raise MetaError(f"Incorrect number of partition values. numPartKeys={len(keys)}, part_val=[{shown}]")
        if not values:
            raise MetaError("Invalid partition key & values; keys [], values []")
        return entry.partitions.with_values(values)

    def add_all(
        self, database: str, name: str, partitions: Sequence[Partition], *, if_not_exists: bool = False
    ) -> list[Partition]:
        """Add partitions, all of them or none; gives those that were added, as they are stored.

        Args:
            if_not_exists: leave out those that exist.

        Raises AlreadyExistsError, MetaError for doubles and wrong values, InvalidObjectError for an unknown table.
        """
        refusal = InvalidObjectError(f"Unable to add partitions because {qualified(database, name)} does not exist")
        return self._add(self._found(database, name, refusal), partitions, if_not_exists, refusal)

    def add(self, database: str, name: str, partition: Partition) -> Partition:
        """Add a partition; gives it as it is stored. Raises as ``add_all``."""
        refusal = InvalidObjectError("Unable to add partition because table or database do not exist")
        return self._add(self._found(database, name, refusal), [partition], False, refusal)[0]

    def append(self, database: str, name: str, values: Sequence[str]) -> Partition:
        """Add a partition with the storage of its table. Raises as ``add_all``."""
        refusal = InvalidObjectError("Unable to add partition because table or database do not exist")
        entry = self._found(database, name, refusal)
        new = Partition(tuple(values), entry.table.storage)
        return self._add(entry, [new], False, refusal, exists="Partition already exists:")[0]

    def _add(
        self,
        entry: TableEntry,
        partitions: Sequence[Partition],
        if_not_exists: bool,
        refusal: CatalogError,
        exists: str = "Partition already exists: ",
    ) -> list[Partition]:
        if not partitions:
            return []
        now, added = now_ms() // 1000, dict[str, Partition]()

        def propose(state: TableState) -> TableChange | None:
            current = _defined(state, refusal)
            added.clear()
            name_of = namer(current.partition_keys)
            taken = _taken(state, current)
            for partition in partitions:
                key = name_of(partition.values)
                if key in added:
                    shown = _shown(entry.table, partition)
                    raise MetaError(f"java.io.IOException: Duplicate partitions in the list: {shown}")
                if state.partitions.position(key) is None:
                    added[key] = stored_partition(partition, current, now)
                    _check_alone(current, added[key], taken)
                elif not if_not_exists:
                    raise AlreadyExistsError(exists + _shown(entry.table, partition))
            return PartitionsChange(put=PartitionRows.of(added.values())) if added else None

        state = self._logs.table(entry.id).commit(propose).state
        return [state.partitions.named(key) or stored for key, stored in added.items()]

    def alter(self, database: str, name: str, partition: Partition) -> None:
        """Give a partition another definition. Raises as ``alter_all``."""
        refusal = "Unable to alter partition because table or database does not exist."
        self._alter(database, name, [partition], "alter is not possible: {1}", refusal)

    def alter_all(self, database: str, name: str, partitions: Sequence[Partition]) -> None:
        """Give partitions other definitions, all of them or none. They are found by their values.

        Raises InvalidOperationError for an unknown table or partition, MetaError for wrong values.
        """
        refusal = "Unable to alter partitions because table or database does not exist."
        self._alter(database, name, partitions, "Alter partition operation failed: {0}(message:{1})", refusal)

    def _alter(self, database: str, name: str, partitions: Sequence[Partition], form: str, no_table: str) -> None:
        refusal = InvalidOperationError(form.format("InvalidObjectException", no_table))
        entry = self._found(database, name, refusal)
        now = now_ms() // 1000

        def propose(state: TableState) -> TableChange | None:
            current = _defined(state, refusal)
            altered = []
            for partition in partitions:
                before = state.partitions.named(partition_name(current.partition_keys, partition.values))
                if before is None:
                    missing = _missing(partition.values).what
                    raise InvalidOperationError(form.format("NoSuchObjectException", missing))
                altered.append(altered_partition(partition, before, now))
            return PartitionsChange(put=PartitionRows.of(altered)) if altered else None

        self._logs.table(entry.id).commit(propose)

    def rename(
        self, database: str, name: str, values: Sequence[str], new: Partition, location: str | None = None
    ) -> None:
        """Give a partition other values, and the definition ``new``. It keeps the statistics of columns that it has.

        Args:
            location: where its files are from now on; None for where they are.

        Raises InvalidOperationError for an unknown table or partition, or if the new values are taken.
        """
        refusal = InvalidOperationError("Unable to alter partition because table or database does not exist.")
        entry = self._found(database, name, refusal)

        def propose(state: TableState) -> TableChange:
            current = _defined(state, refusal)
            old_name = partition_name(current.partition_keys, values)
            before = state.partitions.named(old_name)
            if before is None:
                raise InvalidOperationError("Unable to rename partition because old partition does not exist")
            if state.partitions.named(partition_name(current.partition_keys, new.values)) is not None:
                shown = f"{folded(database)}.{folded(name)}.[{', '.join(new.values)}]"
                raise InvalidOperationError(f"Partition already exists:{shown}")
            altered = altered_partition(_replace(new, location=location or before.location), before, now_ms() // 1000)
            new_name = partition_name(current.partition_keys, new.values)
            return PartitionsChange((old_name,), PartitionRows.of([altered]), new_name)

        self._logs.table(entry.id).commit(propose)

    def drop(self, database: str, name: str, names: Sequence[str], *, if_exists: bool = False) -> list[Partition]:
        """Drop partitions by their names, all of them or none; gives the dropped ones. Files stay.

        Args:
            if_exists: leave out those that do not exist.

        Raises NoSuchObjectError.
        """
        entry = self._logs.find(database, name)
        dropped: dict[str, Partition] = {}

        def propose(state: TableState) -> TableChange | None:
            partitions_by_name = {key: state.partitions.named(key) for key in names}
            dropped.clear()
            dropped.update({key: partition for key, partition in partitions_by_name.items() if partition is not None})
            if len(dropped) < len(partitions_by_name) and not if_exists:
                raise NoSuchObjectError("Some partitions to drop are missing")
            return PartitionsChange(tuple(dropped)) if dropped else None

        self._logs.table(entry.id).commit(propose)
        return list(dropped.values())

    def _found(self, database: str, name: str, refusal: CatalogError) -> TableEntry:
        try:
            return self._logs.find(database, name)
        except NoSuchObjectError as error:
            raise refusal from error


def new_locations(entry: TableEntry, partitions: Sequence[Partition]) -> list[str | None]:
    """The places of those of some partitions that the table does not have yet."""
    table = entry.table
    if table.location is None:
        return []
    name_of = namer(table.partition_keys)
    new = (p for p in partitions if entry.partitions.position(name_of(p.values)) is None)
    return [normal_location(p.location) if p.location else partition_location(table, p.values) for p in new]


def changed_locations(entry: TableEntry, partitions: Sequence[Partition]) -> list[str]:
    """The locations of some partitions that are others than those they have."""
    name_of = namer(entry.table.partition_keys)
    named = ((p.location, entry.partitions.named(name_of(p.values))) for p in partitions if p.location)
    return [new for new, known in named if new and not (known and same_place(known.location, new))]


def values_of_name(table: Table, name: str) -> tuple[str, ...]:
    """The values of a partition's name, whose parts may stand in any order.

    Raises InvalidObjectError if a key is missing, MetaError for the empty name.
    """
    spec = partition_spec(name)
    for key in table.partition_keys:
        if key.name not in spec:
            raise InvalidObjectError(f"incomplete partition name - missing {key.name}")
    return tuple(spec[key.name] for key in table.partition_keys)


def _missing(values: Sequence[str]) -> NoSuchObjectError:
    return NoSuchObjectError(f"partition values=[{', '.join(values)}]")


def _defined(state: TableState, refusal: CatalogError) -> Table:
    if state.table is None:
        raise refusal
    return state.table


def _taken(state: TableState, table: Table) -> dict[str, str]:
    """Places of a managed table's partitions that are not where their values put them, with their names."""
    if table.kind == EXTERNAL:
        return {}
    return {comparable(place): name for name, place in scattered(state.partitions, table.location)}


def _check_alone(table: Table, partition: Partition, taken: Mapping[str, str]) -> None:
    """Refuse a partition at the place of its values if another one is there: their rows would be the rows of both."""
    place = partition.location
    if taken and place and place == partition_location(table, partition.values) and comparable(place) in taken:
        raise MetaError(
            f"The directory {place} is that of the partition {taken[comparable(place)]}",
            do_next="give the new partition a location, or that one the location of its own values",
        )


def _shown(table: Table, partition: Partition) -> str:
    return f"Partition(values:[{', '.join(partition.values)}], dbName:{table.database}, tableName:{table.name})"
