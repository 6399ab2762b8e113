"""Opens what a command needs to read changes: the tables that the stream has met, and a reader of their records."""

from __future__ import annotations

from collections.abc import Mapping

from binlake.decode.changes import SourceTable
from binlake.position.ledger import Ledger
from binlake.proof.history.changes import ChangeReader
from binlake.settings import Settings
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.ddl_topics import with_heard_topics
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from hudilake.errors import UnsupportedError
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable


def refuse_merged(table: HudiTable) -> None:
    """Raise UnsupportedError for a table that is merged by its writer: a stored version may come from several events,
    and its ordering value names none of them. The rows of a history table say by themselves what made them."""
    if table.config.merging.keeps_versions:
        raise UnsupportedError(
            "each row of a history table is a version already, or a change, and start_at is the place of its event",
            do_next="select the row's versions by its key (binlake query); ask why of the table of the rows",
            table=table.config.name,
        )
    text = "rows of this table are merged from several events ({}), and their versions name none of them"
    if (why := table.config.merging.refusal(text)) is not None:
        raise UnsupportedError(
            why,
            do_next="look at its commits (binlake audit), and at the events in Kafka or in a dump",
            table=table.config.name,
        )


def change_reader(
    settings: Settings, lake: Lake, tables: Mapping[SourceTable, LakeTable], registry: SchemaRegistry | None = None
) -> ChangeReader:
    """A reader of the changes of some tables.

    Args:
        settings: of the stream.
        lake: gets every table that the stream has met, opened read-only; the statements on them decide names.
        tables: the tables whose changes are read.
        registry: the known schemas; None for those of the settings and of the DDL topics.

    Raises CorruptDataError, StorageError, UnsupportedError; with DDL topics also TransientError, ConfigError.
    """
    ledger = Ledger.load(open_storage(settings.state_uri, settings.state_options()), settings.name)
    known = set(tables) | (ledger.tables.keys() if ledger is not None else set())
    for source in known:
        rules = settings.table_rules(source)
        if lake.opened(rules.path) is None:
            lake.look(rules)
    registry = registry or SchemaRegistry(with_heard_topics(settings, lake.root))
    registry.refresh()
    return ChangeReader(settings, registry, lake, tables, sorted(known, key=str))
