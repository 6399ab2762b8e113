"""Where a row of the source is erased: its table, history tables with its versions, and its quarantined records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from binlake.decode.cells import ROW
from binlake.position.record_reader import RecordReader
from binlake.proof.history.dump_erasure import DumpErasure, dump_erasure
from binlake.proof.history.erased_cells import (
    RowKeys,
    cell_keys,
    pair_of_cells,
    quarantined_cells,
    refuse_wide,
    start_of_cells,
    wide_keys,
)
from binlake.proof.history.keys import RowKey, row_key, source_key_fields, version_keys
from binlake.proof.history.quarantined import names_another, quarantined_records
from binlake.rows.upsert.fanout import destination, histories
from binlake.rows.upsert.target import key_columns
from binlake.settings import CompactionSettings, Settings, TableRules
from binlake.settings.fanout import ColumnsRule
from binlake.tables.catalog import CatalogTable, catalog_table_at
from binlake.tables.feeds import Feeds
from binlake.tables.lake import locking
from binlake.tables.lake_table import LakeTable
from binlake.tables.quarantine import ABOUT_RECORDS, quarantine_rules
from binlake.tables.services.policy import compaction_config
from hudilake.format.definition.keys import check_own_keys
from hudilake.services.erasure.erase import ErasureReport, check_savepoints, erase, keys_with
from hudilake.services.erasure.rewrite import Rewrite
from hudilake.services.erasure.search import ErasurePlan, plan_erasure
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable

_OWNER = "binlake erase"
#: How the quarantine calls the table of records whose table is not known. They may be of a row of another table.
_NO_TABLE = "-"


@dataclass(frozen=True)
class RowErasure:
    """The erasure of one row of the source.

    Args:
        settings: of the stream.
        places: table -> the row's record keys there; its own table is the first.
        quarantined: the record keys of the quarantine table that hold the row.
        unmatched: how many quarantined records of the table, or of no known one, cannot be said to be of another row.
        plans: name of a table -> what will be done to it; the quarantine and the dumps first, for the texts of the row
            are in its table.
        dumps: the erasure from the dumps; None without dumps.
        elsewhere: the roots of other dumps that the table has taken, which are not read.
    """

    settings: Settings
    places: Sequence[tuple[CatalogTable, frozenset[str]]]
    quarantined: frozenset[str]
    unmatched: int
    plans: dict[str, ErasurePlan]
    dumps: DumpErasure | None = None
    elsewhere: Sequence[str] = ()

    @property
    def texts(self) -> frozenset[bytes]:
        """Of the row: what is looked for in other places."""
        return frozenset[bytes]().union(*(self.plans[place.name].texts for place, _ in self.places))

    def carry_out(self, *, release_savepoints: bool) -> Iterator[tuple[str, ErasureReport]]:
        """Erase the row, from the quarantine and the dumps first. Yields each table's name and report. Errors as
        ``erase``; LostOwnershipError while a replay of the stream runs."""
        for name, plan in self.plans.items():  # before the first table changes
            check_savepoints(name, plan, release_savepoints=release_savepoints)
        owner = locking(self.settings.locking, _OWNER)
        if QUARANTINE in self.plans:
            rules = quarantine_rules(self.settings)
            table = LakeTable.open(_lake(self.settings).sub(rules.path), rules, owner)
            rewrite = replace(rewrite_of(table), no_texts=ABOUT_RECORDS)
            done = erase(rewrite, self.quarantined, self.texts, release_savepoints=release_savepoints)
            yield QUARANTINE, done
        if self.dumps is not None:
            yield DUMPS, self.dumps.carry_out(self.texts)
        for place, keys in self.places:
            table = LakeTable.open(place.storage, place.rules, owner)
            yield place.name, erase(rewrite_of(table), keys, release_savepoints=release_savepoints)


#: How the quarantine and the dumps are called in plans and reports.
QUARANTINE, DUMPS = "quarantine", "dumps"


def plan_row_erasure(settings: Settings, place: CatalogTable, text: str) -> RowErasure:
    """Look for a row in the files of its table, in those of its history tables with the same key, and in the
    quarantine, and in the dumps. Changes nothing.

    Args:
        settings: of the stream.
        place: the table.
        text: its key, as ``row_key`` takes it; in a table of cells also the row alone, for all its cells; in
            a table without one values of any columns, for all rows that have them.

    Raises ConfigError for what is no key of the table, CorruptDataError, StorageError.
    """
    refuse_wide(settings, place)
    root, opened = _lake(settings), HudiTable.open(place.storage)
    named = row_key(text, opened, (ROW,) if place.rules.cells is not None else ())
    row = replace(named, is_said=_is_said(place.rules, tuple(named.values)))
    feeds = Feeds.load(settings, root)
    start = start_of_cells(row, place)
    keys = RowKeys(_record_keys(row, opened) if start is None else cell_keys(start, opened), start)
    places = [(place, keys.keys), *_wide_rows(settings, root, place, row)]
    for history in _histories(settings, feeds, place):
        versions = HudiTable.open(history.storage)
        if source_key_fields(versions) == source_key_fields(opened):
            places.append((history, _record_keys(row_key(text, versions), versions)))
    plans = {one.name: plan_erasure(HudiTable.open(one.storage), keys) for one, keys in places}
    rows = _table_of_rows(feeds, place)
    held, unmatched = quarantined_records(settings, root, rows, row)
    strangers, unknown = quarantined_records(settings, root, _NO_TABLE, row)
    whole = [
        one for one in held if not names_another(one.key, one.value, row)
    ]  # the others say something of other rows
    unmatched += len(held) - len(whole) + len(strangers) + unknown
    if (pair := pair_of_cells(settings, place)) is not None:
        whole += quarantined_cells(settings, root, pair, str(row.values[ROW]))
    quarantined = frozenset(f"topic:{one.topic},partition:{one.partition},offset:{one.offset}" for one in whole)
    if quarantined:
        store = HudiTable.open(root.sub(settings.quarantine_path))
        plans = {QUARANTINE: plan_erasure(store, quarantined, ABOUT_RECORDS), **plans}
    dumps = dump_erasure(settings, root, place, row, keys)
    if dumps is not None:
        plans = {DUMPS: dumps.look(), **plans}
    taken = RecordReader.newest_of(opened).hours or {}
    elsewhere = sorted(taken.keys() - ({dumps.storage.uri} if dumps is not None else set()))
    return RowErasure(settings, places, quarantined, unmatched, plans, dumps, elsewhere)


def _record_keys(row: RowKey, table: HudiTable) -> frozenset[str]:
    if key_columns(table.config):
        fields = table.config.record_key_fields
        named = pa.table({n: pa.array([row.values.get(n)], table.schema.field(n).type) for n in fields})
        check_own_keys(named, fields, (), table.config.name)
    if table.config.merging.keeps_versions:
        return version_keys(row, table)
    return keys_with(table, row.values) if row.lookup is None else frozenset(row.lookup.keys.to_pylist())


def _is_said(rules: TableRules, key: Sequence[str]) -> bool:
    """Whether records name a row by the columns of its key, with their values: not if the lake masks or computes one,
    or a source of a stitched table calls one otherwise: a column of that name may say another thing there."""
    columns = rules.columns or ColumnsRule()
    made = {mask.column.lower() for mask in columns.masks} | {name.lower() for name, _ in columns.computed}
    renamed = any(ours.lower() != theirs.lower() for group in rules.groups for ours, theirs in group.key)
    return not renamed and made.isdisjoint(name.lower() for name in key)


def _wide_rows(
    settings: Settings, root: Storage, place: CatalogTable, row: RowKey
) -> list[tuple[CatalogTable, frozenset[str]]]:
    """The wide table of a table of cells, with the record key of the row that is derived from the row's cells."""
    pair = pair_of_cells(settings, place)
    if pair is None or not HudiTable.exists(root.sub(pair.wide_rules.path)):
        return []
    wide = catalog_table_at(settings, root, pair.wide_rules.path)
    if wide is None:
        return []
    return [(wide, wide_keys(pair, str(row.values[ROW]), HudiTable.open(wide.storage)))]


def _histories(settings: Settings, feeds: Feeds, place: CatalogTable) -> list[CatalogTable]:
    """The tables with the versions of a table's rows. Where several source tables feed it, the same key names several
    rows of the source: their versions are not taken for those of the row."""
    sources = feeds.of(place.source)
    if settings.tables.is_history(place.source) or len(sources) != 1 or sources[0].part is not None:
        return []
    paths = (settings.table_rules(one).path for one in histories(sources[0].first, settings.tables))
    tables = [catalog_table_at(settings, feeds.root, one) for one in paths if HudiTable.exists(feeds.root.sub(one))]
    return [one for one in tables if one is not None]


def _table_of_rows(feeds: Feeds, place: CatalogTable) -> str:
    """The table by whose name records are quarantined."""
    if not feeds.tables.is_history(place.source):
        return place.name
    return str(destination(feeds.of(place.source)[0].first, feeds.tables))


def rewrite_of(table: LakeTable) -> Rewrite:
    """How rows are taken out of a table of the lake, by its rules."""
    config = compaction_config(table.rules, table.rules.compaction or CompactionSettings())
    return Rewrite(table.hudi, config, table.rows.keep_keys)


def _lake(settings: Settings) -> Storage:
    return open_storage(settings.lake.uri, settings.lake.storage_options())
