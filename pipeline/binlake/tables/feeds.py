"""Which source tables feed a lake table at a position, and which lake tables a source table feeds: the only place.

A lake table is named after the first name of its source table. What the source calls that table now, or called it at a
position, follows from the statements that the stream knows (``binlake.tables.names``); which of the source's tables go
to which lake table follows from the routes. Whoever reads the source, or asks it for rows, asks here under which name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from binlake.decode.changes import SourceTable
from binlake.position.record_reader import RecordReader
from binlake.rows.upsert.fanout import destination, histories, part_of
from binlake.settings import Settings, TablesSettings
from binlake.settings.fanout import Part
from binlake.settings.templates import plain_table
from binlake.tables.names import Feed, TableNames, history_of
from hudilake.errors import UnsupportedError
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable


@dataclass(frozen=True, slots=True)
class SourceOf:
    """A source table of a lake table.

    Args:
        first: its first name: that of its rows in plans, ledgers and commits.
        now: its name at the source; None if the source does not have it, or nobody knows which it is.
        part: which part of the lake table it feeds; None for a lake table of its own.
        missing: why it has no name; "" if it has one.
        names: all that it had at the source, in order.
        gone: whether the source is known to have it no more.
    """

    first: SourceTable
    now: SourceTable | None
    part: Part | None = None
    missing: str = ""
    names: tuple[SourceTable, ...] = ()
    gone: bool = False

    @property
    def name(self) -> str:
        """The name to show: of now, or the last one."""
        return str(self.now or (self.names[-1] if self.names else self.first))

    def known(self) -> SourceTable:
        """Its name at the source. Raises UnsupportedError if it has none."""
        if self.now is None:
            raise UnsupportedError(
                self.missing,
                do_next="name a table that the source has; binlake status tells what stops a table",
                table=self.name,
            )
        return self.now


@dataclass(frozen=True)
class Feeds:
    """What feeds the lake tables of one stream. ``names``: as its statements tell them."""

    tables: TablesSettings
    names: TableNames
    root: Storage

    @staticmethod
    def load(settings: Settings, root: Storage | None = None) -> Feeds:
        """What the stream knows now. Raises CorruptDataError, StorageError."""
        root = root or open_storage(settings.lake.uri, settings.lake.storage_options())
        return Feeds(settings.tables, TableNames.load(root, settings.name), root)

    def of(self, table: SourceTable, seen: Iterable[SourceTable] = (), order: int | None = None) -> list[SourceOf]:
        """The source tables that feed a lake table.

        Args:
            table: the lake table, by the name that its commits record.
            seen: tables of the source: those of a lake table that routes feed are looked for among them.
            order: the ordering value at which they do; now without one.

        Raises CorruptDataError, StorageError.
        """
        if (first := self.tables.history_source(table)) is not None:
            return self._of_history(SourceTable(*first), table, order)
        path = self.tables.rules(table).path
        sources = {feed.first: self._source_of(feed, order) for feed in self._feeds if feed.path == path}
        if not self.tables.fans_out:
            seen = ()
        for name in sorted(set(seen) - {one.now for one in sources.values()}, key=str):
            if self.lake_table(name, order) == table:
                sources[name] = SourceOf(name, name, part_of(name, self.tables), names=(name,))
        return list(sources.values()) or [self._of_its_own(table, path)]

    def lake_table(self, name: SourceTable, order: int | None = None) -> SourceTable | None:
        """The lake table of the rows of the source's table of this name, now or at an ordering value; None if there is
        none, or it is not determined."""
        first = self._first_name(name, order)
        return None if first is None else destination(first, self.tables)

    def knows(self, name: SourceTable) -> bool:
        """Whether the stream knows a table of the source that has, or has had, this name."""
        return any(name == feed.first or any(called.name == name for called in feed.history) for feed in self._feeds)

    def histories(self, name: SourceTable) -> list[SourceTable]:
        """The history tables that the source's table of this name feeds now."""
        first = self._first_name(name, None)
        return [] if first is None else histories(first, self.tables)

    def still_feeds(self, source: SourceOf, order: int) -> bool:
        """Whether a source table had its name at an ordering value too."""
        feed = next((feed for feed in self._feeds if feed.first == source.first), None)
        return source.first == source.now if feed is None else not feed.unsure and feed.called(order) == source.now

    def has_fed(self, name: SourceTable, table: SourceTable, since: int) -> bool:
        """Whether the source's table of this name feeds a lake table, and has had the name since an ordering value."""
        renamed = [feed.history[-1].since for feed in self._feeds if feed.called() == name]
        return self.lake_table(name) == table and all(order <= since for order in renamed)

    @property
    def _feeds(self) -> tuple[Feed, ...]:
        if self.names.feeds is not None:
            return self.names.feeds
        return tuple(Feed(one.path, one.source, one.history) for one in self.names.tables)

    def _first_name(self, name: SourceTable, order: int | None) -> SourceTable | None:
        """The first name of the source's table that has this one, now or at an ordering value; None if the stream takes
        none, or it is not determined."""
        holders = [feed for feed in self._feeds if feed.called(order) == name]
        if holders:
            return None if holders[0].unsure else holders[0].first
        if any(feed.first == name for feed in self._feeds) or not self.tables.selects(name):
            return None  # its first table goes on under another name, or is gone
        return name

    def _of_history(self, first: SourceTable, table: SourceTable, order: int | None) -> list[SourceOf]:
        """The source table of a history table, whatever lake table has its rows. ``first``: its first name."""
        feed = next((feed for feed in self._feeds if feed.first == first), None)
        if feed is None:
            return [self._of_its_own(first, self.tables.rules(table).path)]
        return [replace(self._source_of(feed, order), part=None)]

    def _source_of(self, feed: Feed, order: int | None) -> SourceOf:
        now, part = feed.called(order), part_of(feed.first, self.tables)
        names = tuple(called.name for called in feed.history)
        if feed.unsure:
            missing = f"not determined which table of the source it is: {feed.unsure}"
            return SourceOf(feed.first, None, part, missing, names)
        if now is None and feed.gone is not None:
            missing = f"{feed.gone.how} at the source at {feed.gone.place}; the lake table stays as it is"
            return SourceOf(feed.first, None, part, missing, names, gone=True)
        missing = "" if now is not None else f"the source did not have it then; it had: {history_of(feed.history)}"
        return SourceOf(feed.first, now, part, missing, names)

    def _of_its_own(self, table: SourceTable, path: str) -> SourceOf:
        """The source table of a lake table whose name has never changed."""
        storage = self.root.sub(path)
        entries = (RecordReader.newest_of(HudiTable.open(storage)).ddl or ()) if HudiTable.exists(storage) else ()
        if any(entry.renamed for entry in entries) or plain_table(table.table) != table.table:
            missing = "the names that it has at the source are not known: start the stream, which writes them"
            return SourceOf(table, None, missing=missing, names=(table,))
        return SourceOf(table, table, names=(table,))
