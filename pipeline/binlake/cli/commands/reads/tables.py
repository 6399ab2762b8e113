"""``binlake tables``: the tables that a lake holds under these settings, as they were created."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import typer
from rich.table import Table as Grid

from binlake.cli.options import AsJson, LakeConf, Tables
from binlake.cli.remarks import loading_remark
from binlake.cli.reports import each
from binlake.cli.table_options import chosen
from binlake.cli.text import CellColumn, fill, fitting, say, say_json, terminal
from binlake.position.record_reader import RecordReader
from binlake.settings import Settings
from binlake.tables.catalog import CatalogTable
from hudilake.table.table import HudiTable


@dataclass(frozen=True, slots=True)
class TableSummary:
    """What a table is.

    Args:
        table: ``database.table``, as the source calls it now.
        path: below the lake's root.
        uri: of its root, absolute.
        type: ``merge_on_read`` or ``copy_on_write``.
        index: how the file group of a key is found; ``none`` for an append table.
        buckets: file groups of a partition; None without a bucket index.
        key: the columns of its record key.
        partition: the columns whose values are its directories.
        columns: the number of its columns, without Hudi's own.
        former: its earlier names at the source; "" if it never had another one.
        loaded_rows: the rows that its first load has written so far, if this is not at its end; else None.
    """

    table: str
    path: str
    uri: str
    type: str
    index: str
    buckets: int | None
    key: tuple[str, ...]
    partition: tuple[str, ...]
    columns: int
    former: str
    loaded_rows: int | None


def tables(conf: LakeConf, tables: Tables = None, as_json: AsJson = False) -> None:
    """List the tables of the lake: path, type, index, key and partitions. Changes nothing."""
    settings = Settings.load(conf)
    summaries: list[TableSummary] = []
    code = each(chosen(settings, tables), lambda place: summaries.append(_summary(place)))
    if as_json:
        for one in summaries:
            say_json(dataclasses.asdict(one))
    elif summaries:
        _print(summaries, str(conf))
    elif not code:
        say(f"{settings.lake.uri} has no table of stream {settings.name} yet; binlake run {conf} makes them")
    raise typer.Exit(code)


def _summary(place: CatalogTable) -> TableSummary:
    table = HudiTable.open(place.storage)
    config, unfinished = table.config, RecordReader.newest_of(table).unfinished_load
    return TableSummary(
        place.name,
        place.rules.path,
        place.storage.uri,
        config.kind.type,
        config.kind.index,
        config.bucket_count or None,
        config.record_key_fields,
        config.partition_fields,
        len(table.schema),
        place.former,
        unfinished.rows if unfinished is not None else None,
    )


_COLUMNS: tuple[CellColumn[TableSummary], ...] = (
    CellColumn("type", lambda t: t.type, narrow=True),
    CellColumn("index", lambda t: f"{t.index} ({t.buckets})" if t.buckets else t.index, narrow=True),
    CellColumn("key", lambda t: ", ".join(t.key) or "-", narrow=True, wraps=True),
    CellColumn("path", lambda t: t.path, narrow=True, wraps=True),
    CellColumn("partitioned by", lambda t: ", ".join(t.partition) or "-", wraps=True),
    CellColumn("columns", lambda t: str(t.columns)),
)


def _print(summaries: list[TableSummary], conf: str) -> None:
    console, grid = terminal(), Grid()
    columns = fitting(_COLUMNS, [one.table for one in summaries], summaries, console.width)
    fill(grid, columns, [(one.table, one, None) for one in summaries], console.width)
    console.print(grid)
    for one in summaries:
        if one.loaded_rows is not None:
            say(loading_remark(one.table, one.loaded_rows, conf))
