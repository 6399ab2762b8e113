"""Opens the tables that a stream has written, before its first batch; a lost ledger is recovered from their commits."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from binlake.decode.changes import SourceTable
from binlake.position.held_tables import needs_a_person
from binlake.position.ledger import Ledger
from binlake.position.record_reader import RecordReader
from binlake.position.recovery import oldest_position, recovered
from binlake.settings import Settings
from binlake.source.database.snapshot import SourcePosition
from binlake.tables.catalog import catalog_table_at, table_paths
from binlake.tables.lake import Lake
from binlake.tables.presence import known_tables
from hudilake.errors import LakeError
from hudilake.storage import Storage, is_near

_log = logging.getLogger(__name__)

#: Tables that are opened side by side where a store lets wait. A local disk answers from memory as a rule, and one
#: thread at a time runs Python: more of them wait for each other.
_THREADS, _DISK_THREADS = 8, 2


def recover(settings: Settings, root: Storage, lake: Lake) -> Ledger:
    """The ledger derived from the tables' commits, as ``recovered``. Raises CorruptDataError, StorageError."""
    ledger = recovered(settings.name, _records(settings, root, lake), settings.kafka.transaction_topic)
    if ledger.tables:
        fields = {"event": "ledger_recovered", "stream": ledger.stream, "positions": ledger.positions.to_json()}
        text = "stream %s: the ledger is lost; its positions were taken from %d tables"
        _log.warning(text, ledger.stream, len(ledger.tables), extra=fields)
    return ledger


def loaded_position(settings: Settings, root: Storage, lake: Lake) -> SourcePosition | None:
    """Where a stream goes on that has no position yet, as ``oldest_position``: behind its first load.

    Raises ConfigError for a table whose load has not ended, CorruptDataError, StorageError.
    """
    return oldest_position(record for _, record in _records(settings, root, lake))


def note_loaded(settings: Settings, root: Storage, lake: Lake, ledger: Ledger) -> None:
    """Note the tables of a first load in the ledger: statements about them are carried out before their first row.

    Raises as ``loaded_position``.
    """
    for path, record in _records(settings, root, lake):
        if record.load is not None and record.source is not None:
            ledger.table_met(record.source, path)


def _records(settings: Settings, root: Storage, lake: Lake) -> Iterator[tuple[str, RecordReader]]:
    for path in table_paths(root, settings.tables.path.count("/") + 1):
        place = catalog_table_at(settings, root, path)
        table = lake.get(place.rules) if place is not None else None
        if table is not None:
            yield path, table.recorded


def open_known(settings: Settings, lake: Lake, ledger: Ledger) -> dict[SourceTable, LakeError]:
    """Open the tables of the ledger, so that each one's position is known before the first batch. From now on none of
    them is created anew if it is gone.

    Returns the tables that cannot be opened and need a person. The others go on without them, if the ledger knows their
    topics; of a binlog there is one. Raises LakeError for any other failure.
    """
    sources = list(ledger.tables)
    if sources:
        _log.info("opening %d tables", len(sources))
    for known in known_tables(settings, ledger):
        lake.expect(known)

    def open_one(source: SourceTable) -> LakeError | None:
        try:
            lake.get(settings.table_rules(source))
        except LakeError as error:
            fed = ledger.applied(source) or source in ledger.behind or settings.source.mysql is not None
            if not (needs_a_person(error) and fed):
                raise
            return error
        return None

    with ThreadPoolExecutor(_DISK_THREADS if is_near(lake.root) else _THREADS) as pool:
        errors = zip(sources, pool.map(open_one, sources), strict=True)
        return {source: error for source, error in errors if error is not None}
