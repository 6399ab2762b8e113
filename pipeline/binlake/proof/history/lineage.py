"""Where the rows of a lake table come from, and where those of a source table go.

Every commit of a stream records the offsets that it covers; the names of the source's tables, the routes and the wide
tables are known to the stream. So topics, offsets, transactions, batches and files follow without a search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from binlake.decode.changes import SourceTable
from binlake.hbase.derive.pairs import derived_pairs, pair_of_wide
from binlake.hbase.settings.lake_tables import split_name
from binlake.position.ledger import Ledger
from binlake.position.record_reader import RecordReader
from binlake.proof.history.commits import Commit, CommitLog
from binlake.settings import Settings
from binlake.source.offsets import NO_OFFSETS, Offsets
from binlake.tables.catalog import CatalogTable, did_you_mean
from binlake.tables.feeds import Feeds, SourceOf
from hudilake.errors import ConfigError
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable


@dataclass(frozen=True)
class CommitLineage:
    """A commit with what its record says beside its offsets.

    Args:
        commit: it.
        batch: the number of the stream's batch; None for a commit of no batch.
        transaction: the newest transaction of the source in it; "" if the transaction topic brought none.
        split: whether its batch may end within a transaction.
    """

    commit: Commit
    batch: int | None = None
    transaction: str = ""
    split: bool = False

    @property
    def files(self) -> list[str]:
        """The files that it wrote, below the table's root."""
        return sorted(path for paths in self.commit.files.values() for path in paths)


@dataclass(frozen=True)
class TableLineage:
    """A lake table between its sources and what is derived from it.

    Args:
        table: ``database.table``.
        path: of the table in the lake.
        sources: the source tables that feed it.
        cells: the table of cells that it is derived from; "" for any other table.
        positions: the offsets below which everything of the stream is in the table.
        engine: how rows of one key are merged.
        derives: the wide tables that are derived from it.
        log: its commits.
    """

    table: str
    path: str
    sources: Sequence[SourceOf]
    cells: str
    positions: Offsets
    engine: str
    derives: Sequence[str]
    log: CommitLog

    def newest(self, count: int) -> list[Commit]:
        """The newest commits, the last one first."""
        return list(self.log.commits.values())[: -count - 1 : -1]


def table_lineage(settings: Settings, root: Storage, place: CatalogTable) -> TableLineage:
    """The lineage of a lake table. Reads the records of all its commits. Raises CorruptDataError, StorageError,
    UnsupportedError."""
    table = HudiTable.open(place.storage)
    pair = pair_of_wide(settings, place.source)
    sources = _sources(settings, root, place.source) if pair is None else []
    return TableLineage(
        place.name,
        place.rules.path,
        sources,
        str(pair.cells) if pair is not None else "",
        RecordReader.newest_of(table).positions_of(settings.name) if pair is None else NO_OFFSETS,
        place.rules.merge.engine,
        _derives(settings, place.source),
        CommitLog.of(table, settings.name),
    )


def _sources(settings: Settings, root: Storage, table: SourceTable) -> list[SourceOf]:
    """The source tables of a lake table that is not derived from another one: of a table of cells the store's table, of
    a stitched table those that the settings name or that have sent rows."""
    for cells in settings.tables.cells:
        if cells.cells_table == str(table):
            store = SourceTable(*split_name(cells.source))
            return [SourceOf(store, store, names=(store,))]
    seen: set[SourceTable] = set()
    for stitched in settings.tables.stitched:
        if stitched.table == str(table):
            ledger = Ledger.load(open_storage(settings.state_uri, settings.state_options()), settings.name)
            seen.update(ledger.heights if ledger is not None else ())
            named = [one.match for one in stitched.sources if not set(one.match) & set("*?[")]
            seen.update(SourceTable(*split_name(name)) for name in named if "." in name)
    return Feeds.load(settings, root).of(table, seen)


def commit_lineage(place: CatalogTable, lineage: TableLineage, instant: str) -> CommitLineage:
    """A commit of a table. ``instant``: its requested time. Raises ConfigError if the table has no such commit, and as
    ``table_lineage``."""
    commit = lineage.log.commits.get(instant)
    if commit is None:
        raise ConfigError(
            "the table has no such commit",
            do_next="binlake inspect lists the newest ones",
            table=lineage.table,
            instant=instant,
        )
    table = HudiTable.open(place.storage)
    active = table.timeline.find(instant)
    if active is None or not active.completed:
        return CommitLineage(commit)  # archived: the history keeps its offsets and files
    record = RecordReader.of_commit(table.timeline.commit_metadata(active).extra)
    passed = record.transactions
    return CommitLineage(
        commit,
        record.batch if record.stream is not None else None,
        (passed.last or "") if passed is not None else "",
        passed is not None and passed.split,
    )


def fed_tables(settings: Settings, root: Storage, source: str) -> Mapping[str, str]:
    """The lake tables that a table of the source feeds now: name -> how, in words. Empty if the settings leave it out,
    or another table has its name now.

    Raises ConfigError for a text that is no ``database.table``, and for a table that neither the stream nor the lake
    has seen; CorruptDataError, StorageError.
    """
    database, dot, bare = source.partition(".")
    if not (dot and database and bare):
        raise ConfigError("this names no table of the source", do_next="write database.table", table=source)
    feeds, name = Feeds.load(settings, root), SourceTable(database, bare)
    table = feeds.lake_table(name)
    if table is None:
        return {}
    if not feeds.knows(name):
        _check_seen(settings, root, name, (table, *feeds.histories(name)))
    parts = [one.part for one in feeds.of(table, (name,)) if name in (one.now, one.first)]
    how = f"as {type(parts[0]).__name__.removesuffix('Rule').lower()} of several" if parts and parts[0] else "its rows"
    versions = dict.fromkeys(map(str, feeds.histories(name)), "the versions of its rows")
    return {str(table): how, **versions, **dict.fromkeys(_derives(settings, table), f"derived from {table}")}


def _check_seen(settings: Settings, root: Storage, name: SourceTable, tables: Sequence[SourceTable]) -> None:
    """Raise ConfigError unless the stream or the lake has one of the tables that the settings make of one."""
    ledger = Ledger.load(open_storage(settings.state_uri, settings.state_options()), settings.name)
    met = {*ledger.tables, *ledger.behind} if ledger is not None else set()
    if met.isdisjoint(tables) and not any(HudiTable.exists(root.sub(settings.table_rules(t).path)) for t in tables):
        raise ConfigError(
            "neither the stream nor the lake has seen this table of the source",
            do_next=did_you_mean(str(name), map(str, met)) or "wait for its first rows",
            table=str(name),
        )


def _derives(settings: Settings, table: SourceTable) -> list[str]:
    return [str(pair.wide) for pair in derived_pairs(settings) if pair.cells == table]
