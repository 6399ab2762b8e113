"""The files of tables and partitions that clients drop with the wish to delete data.

The files of an external table never go, whatever the client asks. A managed table with files is dropped only if its
files may be deleted: else a table created later at the same place would show the rows of the dropped one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.metastore.model.errors import MetaError
from pipeline.metastore.model.objects import Table
from pipeline.storage import Storage

log = logging.getLogger(__name__)

_HUDI = "hudi"


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Which files may be deleted.

    Args:
        open_storage: opens a location; without it nothing is looked at and nothing deleted.
        delete: whether the files of managed tables are deleted when clients ask for it.
        roots: only below these locations.
        hudi: whether this is so for Hudi tables, too.
    """

    open_storage: Callable[[str], Storage] | None = None
    delete: bool = False
    roots: Sequence[str] = ()
    hudi: bool = False

    def check(self, table: Table, locations: Sequence[str | None]) -> None:
        """Before a table or partitions of it are dropped with the wish to delete data.

        Raises:
            MetaError: they are managed, have files, and these may not be deleted.
        """
        if self.open_storage is None or is_external(table):
            return
        for location in filter(None, locations):
            why = self._kept(table, location)
            if why and next(iter(self.open_storage(location).walk("")), None) is not None:
                raise MetaError(
                    f"The managed table {table.database}.{table.name} cannot be dropped with its files: {why}",
                    do_next="make the table external and drop it, delete the files first, or change the settings",
                    table=f"{table.database}.{table.name}",
                    path=location,
                )

    def delete_dropped(self, table: Table, locations: Sequence[str | None]) -> list[str]:
        """After a table or partitions of it were dropped with the wish to delete data: the deleted locations."""
        if self.open_storage is None or is_external(table):
            return []
        going = [location for location in filter(None, locations) if not self._kept(table, location)]
        for location in going:
            self.open_storage(location).delete_tree("")
            log.info("The files at %s of %s.%s are deleted", location, table.database, table.name)
        return going

    def _kept(self, table: Table, location: str) -> str | None:
        """Why the files stay; None if they may be deleted."""
        if not self.delete:
            return "the service deletes no files"
        if not self._below_a_root(location):
            return "they are not below a place where the service deletes files"
        if not self.hudi and is_hudi(table):
            return "it is a Hudi table"
        return None

    def _below_a_root(self, location: str) -> bool:
        """By the storages' own spelling: clients write ``file:/x``, ``file:///x`` and ``/x`` for one place."""
        if self.open_storage is None or ".." in location.split("/"):
            return False
        place = self.open_storage(location).uri.rstrip("/")
        roots = (self.open_storage(root).uri.rstrip("/") for root in self.roots)
        return any(place.startswith(f"{root}/") for root in roots)


def is_external(table: Table) -> bool:
    """Whether the files of a table belong to somebody else."""
    return table.kind != "MANAGED_TABLE" or table.parameters.get("EXTERNAL", "").upper() == "TRUE"


def is_hudi(table: Table) -> bool:
    """Whether a table is a Hudi table, by its parameters and its input format."""
    provider = table.parameters.get("spark.sql.sources.provider", "").lower()
    return provider == _HUDI or _HUDI in (table.storage.input_format or "").lower()
