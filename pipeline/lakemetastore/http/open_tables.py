"""The lake tables that a process of the service has open, by location, and how fresh each is."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from hudilake.clock import monotonic_s
from hudilake.errors import ConfigError, LakeError, TransientError
from hudilake.format.definition.properties import PROPERTIES_PATH
from hudilake.format.timeline.instant import COMPLETED_ACTIONS
from hudilake.read import TableReader
from hudilake.read.index import TableIndex, table_index
from hudilake.read.source import KnownTable
from hudilake.storage.base import FileInfo, Storage
from hudilake.table.table import HudiTable
from lakemetastore.errors import NoSuchObjectError

#: How long a request waits for others of its table.
_LOCK_S = 10.0
#: How long a table stays open. A comparison lists the end of its timeline only: instants that were archived stay known,
#: and one that began and ended unseen behind that end is missed (``timeline.Timeline``).
_OPEN_S = 600.0
#: Opens the metadata table of a state of a table, or what takes its place.
IndexOf: TypeAlias = Callable[[HudiTable], TableIndex | None]
_SCHEMES = {"s3a": "s3", "s3n": "s3"}


class NotSeenError(TransientError):
    """The instant that an answer must have is not completed in the timeline."""


@dataclass
class TableView:
    """A table in one state, held by one thread at a time.

    ``properties``: size and time of ``hoodie.properties`` when it was opened.
    """

    reader: TableReader
    properties: FileInfo | None
    _known: tuple[int, KnownTable] | None = None
    _index: tuple[int, TableIndex | None] | None = None

    @property
    def known(self) -> KnownTable:
        """The state. Raises CorruptDataError, StorageError."""
        table = self.reader.table
        if self._known is None or self._known[0] != table.generation:
            instants = [*table.timeline.pending(), *table.timeline.completed_actions(COMPLETED_ACTIONS)]
            known = KnownTable.of(table.config.to_properties(), instants, table.state.newest_avro_schema())
            self._known = table.generation, known
        return self._known[1]

    @property
    def index(self) -> TableIndex | None:
        """The metadata table, if there is one."""
        table = self.reader.table
        if self._index is None or self._index[0] != table.generation:
            self._index = table.generation, self.reader.index_of(table)
        return self._index[1]


@dataclass
class OpenTable:
    """One table; ``hold`` gives its view.

    ``index_of``: as of ``TableReader``.
    """

    storage: Storage
    index_of: IndexOf = table_index
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _view: TableView | None = None
    _checked: float = 0.0
    _opened: float = 0.0
    #: How often storage was asked whether the table has changed.
    checks: int = 0

    @contextlib.contextmanager
    def hold(self, max_age_ms: int = 0, at_least: str | None = None, *, anew: bool = False) -> Iterator[TableView]:
        """The table in a state that was compared with storage at most so long before this call.

        Args:
            max_age_ms: 0: compared after the call. Callers that wait for each other share a comparison.
            at_least: the requested time of an instant that the state must have as completed.
            anew: open the table again: its timeline then has no instant that was archived meanwhile.

        Raises NotSeenError, NoSuchObjectError if there is no table, CorruptDataError, StorageError; TransientError if
        other requests hold the table too long.
        """
        called = monotonic_s()
        with self._locked():
            view = None if anew else self._view
            if view is None or self._checked < called - max_age_ms / 1000:
                view = self._compare(anew)
            if at_least is not None and not _has(view, at_least):
                view = self._compare()
                if not _has(view, at_least):
                    raise NotSeenError(
                        "the instant is not completed in the table's timeline",
                        do_next="ask again once the commit has returned; check the instant",
                        instant=at_least,
                        table=self.storage.uri,
                    )
            yield view

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """The lock; not for ever, so that a store that hangs does not take all threads of the service."""
        if not self._lock.acquire(timeout=_LOCK_S):
            raise TransientError(
                "other requests hold the table",
                do_next="ask again; look at the store's answer times",
                table=self.storage.uri,
            )
        try:
            yield
        finally:
            self._lock.release()

    def _open(self) -> TableReader:
        reader = TableReader.open(self.storage)
        reader.index_of = self.index_of
        return reader

    def _compare(self, anew: bool = False) -> TableView:
        """The table in the state that storage shows now."""
        began = monotonic_s()
        if anew or began > self._opened + _OPEN_S:
            self._view = None
        self.checks += 1
        try:
            properties = self.storage.stat(PROPERTIES_PATH)
            if self._view is None or properties is None or properties != self._view.properties:
                self._view, self._opened = TableView(self._open(), properties), began
            else:
                self._view.reader.refresh()
        except ConfigError as error:
            self._view = None
            raise NoSuchObjectError(
                "there is no table at this location", do_next="check the location", location=self.storage.uri
            ) from error
        except LakeError:
            self._view = None
            raise
        self._checked = began
        return self._view


def _has(view: TableView, instant: str) -> bool:
    write = view.reader.table.timeline.find(instant)
    return write.completed if write is not None else view.reader.table.timeline.is_completed(instant)


class OpenTables:
    """Tables below some roots; nothing else is ever opened. Safe to use from several threads.

    Args:
        roots: of the lakes.
        index_of: opens the metadata table of a state of a table, or what takes its place.
        kept: how many tables stay open; those that were not asked for longest are closed first.
    """

    def __init__(self, roots: Sequence[Storage], index_of: IndexOf = table_index, kept: int = 512) -> None:
        self._index_of = index_of
        self._roots = {normalised(root.uri): root for root in roots}
        self._kept = kept
        self._guard = threading.Lock()
        self._open: OrderedDict[str, OpenTable] = OrderedDict()

    def at(self, location: str) -> OpenTable:
        """The table at a URI. Raises NoSuchObjectError for a place outside of the lakes."""
        place = normalised(location)
        with self._guard:
            table = self._open.get(place)
            if table is None:
                table = self._open[place] = OpenTable(self._storage(place, location), self._index_of)
                while len(self._open) > self._kept:
                    self._open.popitem(last=False)
            self._open.move_to_end(place)
            return table

    def __len__(self) -> int:
        return len(self._open)

    @property
    def checks(self) -> int:
        """How often storage was asked whether an open table has changed."""
        with self._guard:
            return sum(table.checks for table in self._open.values())

    def _storage(self, place: str, location: str) -> Storage:
        for uri, root in self._roots.items():
            inside = place.removeprefix(uri)
            if inside == "":
                return root
            if inside != place and inside.startswith("/") and _plain(inside[1:]):
                return root.sub(inside[1:])
        raise NoSuchObjectError(
            "the location is in none of the service's lakes",
            do_next="add its lake to the service's settings, or correct the location",
            location=location[:500],
        )


def _plain(path: str) -> bool:
    """Whether a path leads to no place but the one it names."""
    return not any(part in ("", ".", "..") for part in path.split("/")) and "\0" not in path


def normalised(location: str) -> str:
    """A URI in one spelling: ``file:/lake/t/`` and ``file:///lake/t``, ``s3a://`` and ``s3://`` are the same."""
    scheme, colon, rest = location.partition(":")
    if not colon:
        return f"file://{location.rstrip('/')}"
    scheme = scheme.lower()
    if scheme == "file" and not rest.startswith("//"):
        rest = f"//{rest}"
    return f"{_SCHEMES.get(scheme, scheme)}:{rest.rstrip('/')}"
