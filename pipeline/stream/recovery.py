"""Recovers a lost ledger: opens the tables of the lake and reads the stream's position from their commit records."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from pipeline.lake.catalog import catalog_table_at, table_paths
from pipeline.lake.lake import Lake
from pipeline.position.ledger import Ledger
from pipeline.position.record_reader import RecordReader
from pipeline.position.recovery import recovered
from pipeline.settings import Settings
from pipeline.storage import Storage

_log = logging.getLogger(__name__)


def recover(settings: Settings, root: Storage, lake: Lake) -> Ledger:
    """The ledger derived from the tables' commits, as ``recovered``. Raises CorruptDataError, StorageError."""
    ledger = recovered(settings.name, _records(settings, root, lake), settings.kafka.transaction_topic)
    if ledger.tables:
        fields = {"event": "ledger_recovered", "stream": ledger.stream, "positions": ledger.positions.to_json()}
        text = "stream %s: the ledger is lost; its positions were taken from %d tables"
        _log.warning(text, ledger.stream, len(ledger.tables), extra=fields)
    return ledger


def _records(settings: Settings, root: Storage, lake: Lake) -> Iterator[tuple[str, RecordReader]]:
    for path in table_paths(root, settings.tables.path.count("/") + 1):
        place = catalog_table_at(settings, root, path)
        table = lake.get(place.rules) if place is not None else None
        if table is not None:
            yield path, table.recorded
