"""The directories and files of databases, tables and partitions: made, moved and deleted as Hive Metastore 3.1.3 does,
and the one place that says which of them may be touched.

The files of an external table never go, whatever the client asks. Nothing is moved or deleted that is not below the
warehouse, that a symbolic link leads to, that has a Hudi table in it or around it, or that somebody else in the
catalog has. A managed table whose files may not go is not dropped while it has some: else a table created later at the
same place would show the rows of the dropped one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hudilake.errors import ConfigError, LakeError
from hudilake.storage import Storage
from hudilake.storage.abilities import unsynced
from hudilake.storage.directories import followed, is_there, make, move, remove_empty
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.catalog.claims import Claims, Removal
from lakemetastore.catalog.locations import comparable, covers, normal_location
from lakemetastore.errors import CatalogError, InvalidOperationError, MetaError
from lakemetastore.model import Table

log = logging.getLogger(__name__)

_HUDI, _HOODIE = "hudi", ".hoodie"


@dataclass(frozen=True, slots=True)
class Move:
    """A directory of a table or partition that gets another place.

    Args:
        table: whose it is.
        old, new: locations.
        done: whether the catalog has the new place, asked when it is not known whether a change was made.
    """

    table: Table
    old: str
    new: str
    done: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Which files may be touched.

    Args:
        open_storage: opens a location; without it nothing is looked at, made, moved or deleted.
        delete: whether the files of managed tables are deleted when clients ask for it.
        roots: files are moved and deleted only below these locations.
        hudi: whether this is so for Hudi tables, too.
        lakes: roots of lakes. Clients may name locations there; nothing is moved or deleted.
        locations: others that clients may name.
    """

    open_storage: Callable[[str], Storage] | None = None
    delete: bool = False
    roots: Sequence[str] = ()
    hudi: bool = False
    lakes: Sequence[str] = ()
    locations: Sequence[str] = ()

    def allow(self, *locations: str | None) -> None:
        """Before something of the catalog gets a location. Raises MetaError if clients may not name it."""
        if self.open_storage is None:
            return
        allowed = self._allowed()
        for location in filter(None, locations):
            if not self._is_in(location, allowed):
                raise MetaError(
                    f"The location {location} is not allowed: it is below neither the warehouse nor a lake",
                    do_next="take a location below the warehouse, or add a prefix to `thrift.locations`",
                )

    @contextmanager
    def made(self, locations: Sequence[str | None]) -> Iterator[None]:
        """Directories for the block; those that were made go again if it fails. Raises MetaError."""
        if self.open_storage is None:
            yield
            return
        self.allow(*locations)
        made: list[Storage] = []
        try:
            for location in filter(None, locations):
                place = self._open(location)
                if _make(place, location):
                    made.append(place)
            yield
        except BaseException:
            for place in reversed(made):
                remove_empty(place)
            raise

    def claims(self, catalog: Catalog, going: Removal) -> Claims:
        """Who has which place besides what goes; links are followed."""
        return Claims(catalog, going, self._real)

    @contextmanager
    def moving(self, claims: Claims, wanted: Move) -> Iterator[None]:
        """Move a directory for the block, and back if it fails.

        Raises InvalidOperationError if something is at the new place, MetaError if the files may not be moved.
        """
        moved = self.open_storage is not None and self._move(claims, wanted)
        try:
            yield
        except BaseException as error:
            if moved:
                self._move_back(wanted, error)
            raise

    def check(self, claims: Claims, table: Table, locations: Sequence[str | None]) -> None:
        """Before a table or partitions of it are dropped with the wish to delete data.

        Raises:
            MetaError: they are managed, have files, and these may not be deleted.
        """
        if self.open_storage is None or is_external(table):
            return
        for location in filter(None, locations):
            why = self._kept(claims, table, location)
            if why and not (self._may_look(location) and self._is_empty(location)):
                raise MetaError(
                    f"The managed table {table.database}.{table.name} cannot be dropped with its files: {why}",
                    do_next="make the table external and drop it, delete the files first, or change the settings",
                    table=f"{table.database}.{table.name}",
                    path=location,
                )

    def delete_dropped(self, claims: Claims, table: Table | None, locations: Sequence[str | None]) -> list[str]:
        """After a table, partitions of it, or a database (None) were dropped with the wish to delete data: the deleted
        locations."""
        if self.open_storage is None or (table is not None and is_external(table)):
            return []
        deleted = []
        for location in filter(None, locations):
            if why := self._kept(claims, table, location):
                log.info("What is at %s stays: %s", location, why)
                continue
            self._open(location).delete_tree("")
            log.info("The files at %s are deleted", location)
            deleted.append(location)
        return deleted

    def delete_parents(self, table: Table, location: str, levels: int) -> None:
        """After a partition's directory is gone: so many of those above it as are empty, but not its table's."""
        parent = comparable(location)
        for _ in range(levels if self.open_storage is not None else 0):
            parent = parent.rpartition("/")[0]
            inside = self._inside(parent)
            if covers(parent, comparable(table.location or "")) or inside is None or self._around(*inside):
                return
            if not remove_empty(self._open(parent)):
                return

    def empty(self, claims: Claims, table: Table, locations: Sequence[str]) -> None:
        """Delete what is in the directories of a table or of partitions. Raises MetaError before anything is deleted if
        it may not be."""
        if self.open_storage is None:
            raise MetaError("This metastore touches no files", do_next="delete the rows with an engine")
        for location in locations:
            why = "it is an external table" if is_external(table) else self._kept(claims, table, location)
            if why or is_hudi(table):
                raise MetaError(
                    f"The table {table.database}.{table.name} cannot be truncated: {why or 'it is a Hudi table'}",
                    do_next="delete the rows with an engine",
                    path=location,
                )
        for location in locations:
            self._open(location).delete_tree("")
            make(self._open(location))

    def _move(self, claims: Claims, wanted: Move) -> bool:
        """Whether there was something to move."""
        self.allow(wanted.new)
        table, name = wanted.table, f"{wanted.table.database}.{wanted.table.name}"
        place, target = self._open(wanted.old), self._open(wanted.new)
        exists = self._may_look(wanted.old) and is_there(place)
        if (exists or claims.going.partitions is None) and is_there(target):
            raise InvalidOperationError(
                f"New location for this table hive.{name} already exists : {wanted.new}",
                do_next="take another name, or move what is there away",
            )
        if why := self._taken(claims, wanted.new):
            raise InvalidOperationError(
                f"The new location {wanted.new} of {name} cannot be used: {why}", do_next="take another name"
            )
        if not exists:
            return False
        if why := self._kept(claims, table, wanted.old, moving=True):
            raise InvalidOperationError(
                f"The files of the managed table {name} cannot be moved: {why}",
                do_next="keep the name, or make the table external and rename it then",
                path=wanted.old,
            )
        move(place, target)
        return True

    def _taken(self, claims: Claims, location: str) -> str | None:
        """Why nothing can be put at the new place of a move."""
        inside = self._inside(location)
        if inside is None:
            return "it is not below the `warehouse`"
        claimed = claims.on(location)
        return f"it belongs to {claimed}" if claimed else self._around(*inside)

    def _move_back(self, wanted: Move, error: BaseException) -> None:
        try:
            if not isinstance(error, CatalogError) and wanted.done():
                return
            move(self._open(wanted.new), self._open(wanted.old))
        except LakeError as failure:
            log.error("The files of %s are at %s, not at %s: %s", wanted.table.name, wanted.new, wanted.old, failure)

    def _kept(self, claims: Claims, table: Table | None, location: str, *, moving: bool = False) -> str | None:
        """Why files stay where they are; None if they may be deleted, or moved."""
        if not self.delete and not moving:
            return "the service deletes no files (`thrift.delete_managed_data`)"
        inside = self._inside(location)
        if inside is None:
            return "they are not below the `warehouse`"
        if table is not None and is_hudi(table) and not self.hudi:
            return "it is a Hudi table (`thrift.delete_hudi_data`)"
        if why := self._around(*inside):
            return why
        own = table is not None and is_hudi(table) and claims.going.partitions is None
        if self._has_hudi(location, own=own):
            return "a Hudi table is there"
        claimed = claims.on(location)
        return f"they belong to {claimed}, too" if claimed else None

    def _around(self, root: str, path: str) -> str | None:
        """Why a path below a root is out of bounds: by its name, a lake, or a Hudi table around it."""
        if any(segment.startswith(".") for segment in path.split("/")):
            return "the directory is hidden"
        place = f"{root}/{path}"
        for lake in map(self._real, self.lakes):
            if covers(place, lake) or (covers(lake, place) and not covers(lake, root)):
                return f"they are in the lake {lake}"
        above = root
        for segment in path.split("/"):
            if is_there(self._open(f"{above}/{_HOODIE}")):
                return f"they are in the Hudi table {above}"
            above = f"{above}/{segment}"
        return None

    def _has_hudi(self, location: str, *, own: bool) -> bool:
        """Whether a Hudi table is in a directory; ``own``: the directory itself may be one."""
        place = self._open(location)
        if not own and is_there(place.sub(_HOODIE)):
            return True
        return any(_HOODIE in file.path.split("/")[int(own) :] for file in place.walk(""))

    def _inside(self, location: str) -> tuple[str, str] | None:
        """The root that a location is below, and the path from there; None if it is not, or a link is on the way."""
        for given in self.roots:
            root, place = comparable(given), comparable(normal_location(location))
            if place.startswith(f"{root}/"):
                path, real = place[len(root) + 1 :], self._real(given)
                return (real, path) if self._real(location) == f"{real}/{path}" else None
        return None

    def _may_look(self, location: str) -> bool:
        """Whether the service may ask the store of a location."""
        return self._is_in(location, self._allowed())

    def _allowed(self) -> list[tuple[str, str]]:
        """The prefixes that clients may name, as they are compared and with links followed."""
        return [(comparable(one), self._real(one)) for one in (*self.roots, *self.lakes, *self.locations)]

    def _is_in(self, location: str, allowed: Sequence[tuple[str, str]]) -> bool:
        """Whether a location is below one of some prefixes, also where links lead."""
        place = comparable(normal_location(location))
        if not any(covers(said, place) for said, _ in allowed):
            return False
        real = self._real(location)
        return any(covers(one, real) for _, one in allowed)

    def _is_empty(self, location: str) -> bool:
        return next(iter(self._open(location).walk("")), None) is None

    def _open(self, location: str) -> Storage:
        assert self.open_storage is not None
        try:
            return self.open_storage(comparable(location))
        except ConfigError as error:  # a file of the disk is at the location
            raise _no_directory(location, error) from error

    def _real(self, location: str) -> str:
        """A location as one text for each place, with links followed where the disk is ours to look at."""
        place = comparable(location)
        if self.open_storage is None or not place.startswith("file:/"):
            return place
        return comparable(followed(self._open(place)).uri)


def is_external(table: Table) -> bool:
    """Whether the files of a table belong to somebody else."""
    return table.kind != "MANAGED_TABLE" or table.parameters.get("EXTERNAL", "").upper() == "TRUE"


def is_hudi(table: Table) -> bool:
    """Whether a table is a Hudi table, by its parameters and its input format."""
    provider = table.parameters.get("spark.sql.sources.provider", "").lower()
    return provider == _HUDI or _HUDI in (table.storage.input_format or "").lower()


def _make(place: Storage, location: str) -> bool:
    try:
        return make(unsynced(place))  # an empty directory that a power cut takes is made by who writes into it
    except LakeError as error:
        raise _no_directory(location, error) from error


def _no_directory(location: str, error: LakeError) -> MetaError:
    """Hive's words for a location that is no directory."""
    return MetaError(f"{location} is not a directory or unable to create one: {error.what}", do_next=error.do_next)
