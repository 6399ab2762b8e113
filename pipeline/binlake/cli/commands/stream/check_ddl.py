"""What ``binlake check`` says of DDL: the policies, and what statements come to for the lake tables as they stand."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from binlake.decode.changes import SourceTable
from binlake.position.compared import ComparedTables
from binlake.rows.upsert.fanout import destination
from binlake.schema.apply.keeper import DdlKeeper
from binlake.schema.rules.undetermined import undetermined_columns
from binlake.settings import Settings
from binlake.settings.schema_changes import SchemaChangeSettings
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.lake import Lake
from hudilake.storage import Storage, open_storage

#: Statements that are shown of one table, the newest.
_SHOWN = 20


@dataclasses.dataclass(frozen=True)
class DdlFinding:
    """One line of the report. ``refused``: rows go to quarantine for it, or may not be those of the source."""

    name: str
    detail: str
    refused: bool = False


def policies(settings: Settings, tables: Sequence[SourceTable]) -> Iterator[DdlFinding]:
    """The policies: those of all tables, and how some differ from them."""
    common = settings.tables.defaults.schema_changes
    yield DdlFinding("schema changes", _said(common))
    by_rule: dict[SchemaChangeSettings, list[str]] = {}
    for source in tables:
        rule = settings.table_rules(destination(source, settings.tables)).schema_changes
        if rule != common:
            by_rule.setdefault(rule, []).append(str(source))
    for rule, names in by_rule.items():
        yield DdlFinding("schema changes", f"{', '.join(names)}: {_said(rule, common)}")


def _said(rule: SchemaChangeSettings, common: SchemaChangeSettings | None = None) -> str:
    values = rule.model_dump()
    known = common.model_dump() if common is not None else {}
    return ", ".join(f"{name} {value}" for name, value in values.items() if known.get(name) != value)


def statements(
    settings: Settings, lake: Storage, tables: Sequence[SourceTable], topics: Iterable[str]
) -> Iterator[DdlFinding]:
    """The statements of the DDL topics, and those that tables have recorded, table by table. Changes nothing.

    ``topics``: those that exist; they tell whether the rows of a schema change tool's copy come.

    Raises TransientError, ConfigError where the DDL topics cannot be read; CorruptDataError, StorageError for tables.
    """
    registry, opened = SchemaRegistry(settings), Lake(lake)
    registry.refresh()
    targets = sorted({destination(source, settings.tables) for source in tables}, key=str)
    known = [source for source in targets if opened.look(settings.table_rules(source)) is not None]
    keeper = DdlKeeper(settings, opened, registry)
    keeper.history.hear(topics)
    compared = ComparedTables.load(open_storage(settings.state_uri, settings.state_options()))
    previews = keeper.preview(known)
    for source, entries in previews.items():
        for entry, done in entries[-_SHOWN:]:
            yield DdlFinding(f"ddl {source}", f"{entry} ({'carried out' if done else 'waits'})", entry.is_refusal)
        path, table = settings.table_rules(source).path, opened.get(settings.table_rules(source))
        until = compared.until(path, table.truncates) if table is not None else -1
        for one in undetermined_columns((entry for entry, _ in entries), until):
            yield DdlFinding(f"ddl {source}", f"not determined: {one}", refused=True)
        if len(entries) > _SHOWN:
            yield DdlFinding(f"ddl {source}", f"{len(entries) - _SHOWN} older statements are not shown")
    every = [entry for entries in previews.values() for entry, _ in entries]
    for source in sorted(registry.sources(), key=str):
        for said in keeper.cascades(source, every) if settings.tables.selects(source) else ():
            yield DdlFinding(f"ddl {source}", str(said), refused=True)
