"""Finding the stream's place again when its ledger is lost: the tables know."""

from __future__ import annotations

import json
import logging

from pipeline.lake.catalog import table_paths
from pipeline.lake.lake import Lake
from pipeline.lake.lake_table import LakeTable
from pipeline.position.ledger import Ledger
from pipeline.settings import KafkaSettings, Settings
from pipeline.storage import Storage
from pipeline.stream.transactions import TRANSACTIONS

_log = logging.getLogger(__name__)


def recover(settings: Settings, root: Storage, lake: Lake) -> Ledger:
    """A ledger worked out from the tables' newest commits; an empty one where there is no table of this stream.

    A batch begins only after every table has committed the one before. So all that lies below the beginning of any
    table's newest commit is in all tables; the oldest of these beginnings is right to start from, and what some
    tables have beyond it they drop as applied.
    """
    ledger = Ledger(settings.name)
    depth = settings.tables.path.count("/") + 1
    for path in table_paths(root, depth):
        table = lake.at(path, settings)
        if table is None or table.source is None or not table.positions.get(settings.name):
            continue
        ledger.tables[table.source] = path
        _take_back(ledger, table, settings.kafka)
    if ledger.tables:
        fields = {"event": "ledger_recovered", "stream": ledger.stream, "positions": ledger.positions}
        text = "stream %s: the ledger is lost; its positions were taken from %d tables"
        _log.warning(text, ledger.stream, len(ledger.tables), extra=fields)
    return ledger


def _take_back(ledger: Ledger, table: LakeTable, kafka: KafkaSettings) -> None:
    if kafka.transaction_topic is not None:
        told = json.loads(table.table.extra_metadata(TRANSACTIONS) or '{"ms": 0}')
        if told["ms"] > ledger.transactions_ms:  # whatever this commit's batch held was whole
            ledger.transactions_ms, ledger.transactions_ended, ledger.torn = told["ms"], told["ended"], told["torn"]
            ledger.positions[kafka.transaction_topic] = {int(p): offset for p, offset in told["offsets"].items()}
    for topic, parts in table.newest_start(ledger.stream).items():
        mine = ledger.positions.setdefault(topic, {})
        for partition, start in parts.items():
            mine[partition] = min(mine.get(partition, start), start)
