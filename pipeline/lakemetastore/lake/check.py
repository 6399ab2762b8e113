"""The metastore against its lakes: what it says otherwise, what it lacks, and what tables that are gone left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from hudilake.errors import LakeError
from hudilake.table.directory import BrokenTable
from hudilake.table.table import HudiTable
from hudilake.wording import counted
from lakemetastore.catalog.locations import same_place
from lakemetastore.errors import NoSuchObjectError
from lakemetastore.lake.differences import differences
from lakemetastore.lake.fresh import renewed
from lakemetastore.lake.hive_differences import partition_differences, same_definition
from lakemetastore.lake.hive_tables import HiveTable
from lakemetastore.lake.lake_tables import after
from lakemetastore.lake.named import NamedLake
from lakemetastore.lake.naming import NamedTable
from lakemetastore.lake.opened import OpenedTable
from lakemetastore.lake.registration import Registration
from lakemetastore.lake.state import LakeState
from lakemetastore.model import Partition

_REGISTER: Final = "run binlake metastore register, or check --repair"
_REBUILD: Final = "check again if the stream has just committed; else run binlake metastore rebuild, or check --repair"


@dataclass(frozen=True)
class Finding:
    """Something that the metastore says otherwise than a lake. ``where``: the table. ``repair``: puts it right; None if
    only people can."""

    where: str
    what: str
    next: str
    repair: Callable[[], object] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Check:
    """Checks a metastore. It changes nothing; a repair is a call of what the finding holds.

    Args:
        registration: of the tables.
        lakes: all of the metastore's.
    """

    registration: Registration
    lakes: Sequence[NamedLake]

    def findings(self) -> Iterator[Finding]:
        """Everything that is wrong, lake by lake; then what is left of tables that are no more.

        Raises StorageError if a lake or the store cannot be read.
        """
        for lake in self.lakes:
            for table in lake.tables():
                if isinstance(table, BrokenTable):
                    yield Finding(table.name, f"cannot be opened: {table.error}", table.error.do_next)
                    continue
                try:
                    yield from self._of_table(table)
                except LakeError as error:
                    yield Finding(table.full_name, f"cannot be checked: {error}", error.do_next)
        yield from self._left_over()

    def _of_table(self, table: NamedTable) -> Iterator[Finding]:
        lakes = self.registration.lakes
        state = lakes.state(table.storage.uri).state
        fresh = after(LakeState(), renewed(OpenedTable.open(table.storage)))
        register, rebuild = partial(self.registration.register, table), partial(lakes.rebuild, table.storage)
        if not state.uri:
            yield Finding(table.full_name, "is not registered", _REGISTER, register)
            return
        for what in differences(state, fresh):
            yield Finding(table.full_name, what, _REBUILD, rebuild)
        if state.named != (table.database, table.name):
            said = ".".join(state.named) if state.named else "nothing"
            yield Finding(table.full_name, f"the catalog calls it {said}", _REGISTER, register)
            return
        for hive in self.registration.wanted(table, fresh):
            for what in self._of_hive_table(hive):
                yield Finding(f"{table.database}.{hive.table.name}", what, _REGISTER, register)

    def _of_hive_table(self, hive: HiveTable) -> Iterator[str]:
        try:
            entry = self.registration.catalog.tables.get(hive.table.database, hive.table.name)
        except NoSuchObjectError:
            yield "is not in the catalog"
            return
        if not same_place(entry.table.location, hive.table.location):
            yield f"is a table of another place: {entry.table.location}"
            return
        if not same_definition(entry.table, hive.table):
            yield "has another definition than the table"
        changes = partition_differences(entry, hive.partitions)
        if changes.missing:
            yield f"lacks {counted(len(changes.missing), 'partition')}, such as {_first(changes.missing)}"
        if changes.surplus:
            surplus = counted(len(changes.surplus), "partition")
            yield f"has {surplus} that the table has not, such as {changes.surplus[0]}"
        if changes.changed:
            first = _first(changes.changed)
            changed = counted(len(changes.changed), "partition")
            yield f"has {changed} at another place or in another format, such as {first}"

    def _left_over(self) -> Iterator[Finding]:
        """States of tables that are no more, and logs of Hive tables that no name leads to."""
        for state in self.registration.lakes.tables():
            lake = next((lake for lake in self.lakes if lake.has(state.uri)), None)
            if lake is not None and not HudiTable.exists(lake.storage(state.uri)):
                where = ".".join(state.named) if state.named else state.uri
                what = f"there is no Hudi table at {state.uri} any more"
                yield Finding(where, what, "drop it from the catalog", partial(self.registration.drop, state))
        for table_id in self.registration.catalog.tables.orphans():
            delete = partial(self.registration.catalog.tables.delete_orphan, table_id)
            what = "the log of a Hive table has no name: its creation or its drop died, or is under way"
            yield Finding(f"tables/{table_id}", what, "delete it, if nobody is creating a table", delete)


def _first(partitions: Sequence[Partition]) -> str:
    return "/".join(partitions[0].values)
