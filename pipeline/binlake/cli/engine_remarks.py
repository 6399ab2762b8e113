"""What `binlake check` says of tables with a merge engine: what they cannot know, and columns that no table has."""

from __future__ import annotations

from collections.abc import Iterator

from binlake.rows.upsert.engines.contributions import FINAL
from binlake.settings import Settings, TableRules
from hudilake.storage import Storage
from hudilake.table.table import HudiTable


def engine_remarks(settings: Settings, lake: Storage, table: str, rules: TableRules) -> Iterator[str]:
    """Warnings about one table, for people. Raises BinlakeError for a table that cannot be read."""
    if rules.merge.engine != "aggregate":
        return
    if settings.source.format in ("auto", "canal"):
        yield (
            f"{table}: Canal's messages name no binlog position, so facts that Canal delivers again are counted again; "
            "Debezium's and Maxwell's are counted once"
        )
    if final := sorted({function for _, function in rules.merge.functions if function in FINAL}):
        yield (
            f"{table}: {', '.join(final)} cannot take a value back: deletes, and updates of such columns, are "
            "quarantined (irrevocable)"
        )
    if lake.sub(rules.path).list(".hoodie"):
        known = {name.lower() for name in HudiTable.open(lake.sub(rules.path)).schema.names}
        if absent := [column for column, _ in rules.merge.functions if column.lower() not in known]:
            yield f"{table}: merge.columns names {', '.join(absent)}, which the table does not have"
