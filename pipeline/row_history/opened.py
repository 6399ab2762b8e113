"""Opens what a command needs to read changes: the tables that the stream has met, and a reader of their records."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.decode.changes import SourceTable
from pipeline.lake.lake import Lake
from pipeline.lake.lake_table import LakeTable
from pipeline.position.ledger import Ledger
from pipeline.row_history.changes import ChangeReader
from pipeline.settings import Settings
from pipeline.storage import open_storage
from pipeline.stream.schemas import SchemaRegistry


def change_reader(settings: Settings, lake: Lake, tables: Mapping[SourceTable, LakeTable]) -> ChangeReader:
    """A reader of the changes of some tables.

    Args:
        settings: of the stream.
        lake: gets every table that the stream has met, opened read-only; the statements on them decide names.
        tables: the tables whose changes are read.

    Raises CorruptDataError, StorageError, UnsupportedError; with DDL topics also TransientError, ConfigError.
    """
    ledger = Ledger.load(open_storage(settings.state_uri, settings.state_options()), settings.name)
    known = set(tables) | (ledger.tables.keys() if ledger is not None else set())
    for source in known:
        rules = settings.table_rules(source)
        if lake.opened(rules.path) is None:
            lake.look(rules)
    registry = SchemaRegistry(settings)
    registry.refresh()
    return ChangeReader(settings, registry, lake, tables, sorted(known, key=str))
