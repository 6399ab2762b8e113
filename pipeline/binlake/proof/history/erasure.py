"""Where a row of the source is erased: its table, and the quarantined records of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from binlake.proof.history.keys import row_key
from binlake.proof.history.quarantined import quarantined_records
from binlake.settings import CompactionSettings, Settings
from binlake.tables.catalog import CatalogTable
from binlake.tables.lake import locking
from binlake.tables.lake_table import LakeTable
from binlake.tables.quarantine import quarantine_rules
from binlake.tables.services.policy import compaction_config
from hudilake.errors import ConfigError
from hudilake.services.erasure.erase import ErasureReport, erase
from hudilake.services.erasure.rewrite import Rewrite
from hudilake.services.erasure.search import ErasurePlan, plan_erasure
from hudilake.services.erasure.traces import ByteScan, Quarry, scan
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
        place: the row's table.
        keys: its record keys there.
        quarantined: the record keys of the quarantine table that hold the row.
        unmatched: how many quarantined records of the table, or of no known one, cannot be said to be of another row.
        plans: name of a table -> what will be done to it; the quarantine first, for the texts of the row are in its
            table.
    """

    settings: Settings
    place: CatalogTable
    keys: frozenset[str]
    quarantined: frozenset[str]
    unmatched: int
    plans: dict[str, ErasurePlan]

    @property
    def texts(self) -> frozenset[bytes]:
        """Of the row: what is looked for in other places."""
        return self.plans[self.place.name].texts

    def carry_out(self, *, release_savepoints: bool) -> Iterator[tuple[str, ErasureReport]]:
        """Erase the row, the quarantine's records first. Yields each table's name and report. Errors as ``erase``."""
        owner = locking(self.settings.locking, _OWNER)
        if QUARANTINE in self.plans:
            rules = quarantine_rules(self.settings)
            table = LakeTable.open(_lake(self.settings).sub(rules.path), rules, owner)
            done = erase(rewrite_of(table), self.quarantined, self.texts, release_savepoints=release_savepoints)
            yield QUARANTINE, done
        table = LakeTable.open(self.place.storage, self.place.rules, owner)
        yield self.place.name, erase(rewrite_of(table), self.keys, release_savepoints=release_savepoints)

    def dumps(self) -> ByteScan | None:
        """What the dumps still have of the row, which are files of records and not rewritten; None without dumps.
        Raises StorageError."""
        dump = self.settings.dump
        if dump.uri is None:
            return None
        root = open_storage(dump.uri, dump.storage_options(dump.uri, self.settings.lake))
        return scan(root, Quarry(self.keys, self.texts))


#: How the quarantine is called in plans and reports.
QUARANTINE = "quarantine"


def plan_row_erasure(settings: Settings, place: CatalogTable, text: str) -> RowErasure:
    """Look for a row in the files of its table and in the quarantine. Changes nothing.

    Args:
        settings: of the stream.
        place: the table.
        text: its key, as ``row_key`` takes it.

    Raises ConfigError for what is no key of the table, CorruptDataError, StorageError.
    """
    opened = HudiTable.open(place.storage)
    row = row_key(text, opened)
    if row.lookup is None:
        raise ConfigError(
            "a row of a table without a key is erased by its own name",
            do_next="give the value of _binlake_row, which binlake why prints",
            table=place.name,
        )
    keys = frozenset(row.lookup.keys.to_pylist())
    plans = {place.name: plan_erasure(opened, keys)}
    held, unmatched = quarantined_records(settings, _lake(settings), place.name, row)
    strangers, unknown = quarantined_records(settings, _lake(settings), _NO_TABLE, row)
    unmatched += len(strangers) + unknown
    quarantined = frozenset(f"topic:{one.topic},partition:{one.partition},offset:{one.offset}" for one in held)
    if quarantined:
        store = HudiTable.open(_lake(settings).sub(settings.quarantine_path))
        plans = {QUARANTINE: plan_erasure(store, quarantined), **plans}
    return RowErasure(settings, place, keys, quarantined, unmatched, plans)


def rewrite_of(table: LakeTable) -> Rewrite:
    """How rows are taken out of a table of the lake, by its rules."""
    config = compaction_config(table.rules, table.rules.compaction or CompactionSettings())
    return Rewrite(table.hudi, config, table.rows.keep_keys)


def _lake(settings: Settings) -> Storage:
    return open_storage(settings.lake.uri, settings.lake.storage_options())
