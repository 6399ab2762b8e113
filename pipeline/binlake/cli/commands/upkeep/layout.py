"""``binlake layout``: how well a table's files suit its queries, and which order would suit them better."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from binlake.cli.table_options import Conf, TableName, storage_of
from binlake.cli.text import number, one_line, say_json, terminal
from binlake.settings import Settings
from binlake.tables.catalog import catalog_table
from hudilake.errors import ConfigError
from hudilake.policies import FileSizePolicy, OrderPolicy
from hudilake.query.sql.planned import TABLE_NAME
from hudilake.read import TableReader
from hudilake.services.advice.advise import Advice, AdviceSettings, advise
from hudilake.services.advice.queries import statements
from hudilake.storage import open_storage
from hudilake.wording import counted

Queries = Annotated[
    Path | None,
    typer.Option("--queries", help="A file of SQL queries, one a line or apart by semicolons; a repeated one counts."),
]
Rows = Annotated[int, typer.Option("--rows", help="Orders are tried on about so many rows.", min=1000)]
FileBytes = Annotated[
    int | None,
    typer.Option("--file-bytes", help="The size of files to assume; that of the settings, or the default.", min=1),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def layout(
    table: TableName,
    conf: Conf = None,
    queries: Queries = None,
    rows: Rows = 100_000,
    file_bytes: FileBytes = None,
    as_json: Json = False,
) -> None:
    """Propose the order of a table's rows by the overlap of its files and by queries. Changes nothing."""
    reader = TableReader.open(storage_of(table, conf))
    config = reader.table.config
    names = [TABLE_NAME, config.name, f"{config.database}.{config.name}"]
    advice = advise(reader, _read(queries), names, _given(table, conf, rows, file_bytes))
    if as_json:
        say_json(asdict(advice) | {"settings": settings_lines(advice)}, _plain)
        return
    print_advice(advice, terminal())


def _plain(value: object) -> object:
    return value.model_dump(mode="json") if isinstance(value, OrderPolicy) else str(value)


def _read(path: Path | None) -> list[str]:
    """The statements of a file. Raises ConfigError if it cannot be read or has none."""
    if path is None:
        return []
    try:
        queries = statements(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot read the queries: {error}", do_next="name a text file by --queries", path=path
        ) from error
    if not queries:
        raise ConfigError("the file holds no query", do_next="write SELECT statements into it", path=path)
    return queries


def _given(table: str, conf: Path | None, rows: int, file_bytes: int | None) -> AdviceSettings:
    """The policies of the table, its own by the settings or the defaults; ``file_bytes`` in place of their size."""
    given = AdviceSettings(rows=rows)
    if conf is not None:
        settings = Settings.load(conf)
        root = open_storage(settings.lake.uri, settings.lake.storage_options())
        rules = catalog_table(settings, root, table).rules
        compaction = rules.compaction or given.compaction
        given = AdviceSettings(rules.files, rules.clustering, compaction, rows)
    if file_bytes is None:
        return given
    return replace(given, files=FileSizePolicy(target_bytes=file_bytes, small_bytes=1))


def settings_lines(advice: Advice) -> list[str]:
    """The proposal as lines of a settings file; none without one."""
    if advice.order is None:
        return []
    section = "compaction" if advice.in_buckets else "clustering"
    columns = ", ".join(json.dumps(name, ensure_ascii=False) for name in advice.order.columns)
    return [
        "tables:",
        "  overrides:",
        f"  - match: {json.dumps(advice.table, ensure_ascii=False)}",
        f"    {section}:",
        f"      order_by: {{columns: [{columns}], curve: {advice.order.curve}}}",
    ]


def print_advice(advice: Advice, console: Console) -> None:
    """Print columns, queries and the proposal."""
    console.print(f"{advice.table}: {counted(advice.files, 'file')}; {counted(advice.drawn, 'row')} drawn")
    if advice.trouble is not None:
        console.print(f"warning: {advice.trouble}", soft_wrap=True)
    console.print(_columns(advice))
    for one in advice.left_out:
        console.print(f"not counted: {one_line(one.text)}: {one_line(one.why)}", soft_wrap=True)
    if advice.queries:
        console.print(_queries(advice))
    if advice.assumed:
        text = "no queries were given (--queries): ranges of these columns were assumed; 0 times is not counted"
        console.print(text, soft_wrap=True)
    if advice.order is None:
        console.print("no order was found that reads clearly less")
        return
    unit = "row groups" if advice.in_buckets else "files"
    after = sum(one.times * (one.after or 0) for one in advice.queries) / sum(one.times for one in advice.queries)
    now = sum(one.times * one.now for one in advice.queries) / sum(one.times for one in advice.queries)
    text = f"proposal: {advice.order.curve} by {', '.join(advice.order.columns)}: the queries read {_share(after)} of "
    console.print(f"{text}about {number(advice.pieces)} {unit} (now {_share(now)})", soft_wrap=True)
    for line in settings_lines(advice):
        console.print(line, soft_wrap=True)


def _columns(advice: Advice) -> Table:
    grid = Table("column")
    for heading in ("filtered by", "files a value meets", "of", "distinct, about", "null"):
        grid.add_column(heading, justify="right")
    for one in advice.columns:
        overlap = one.overlap
        known = (
            ("", "", "") if overlap is None else (f"{overlap.depth:.1f}", number(overlap.files), _share(overlap.nulls))
        )
        distinct = "" if one.distinct is None else number(one.distinct)
        grid.add_row(one.column, number(one.asked), known[0], known[1], distinct, known[2])
    return grid


def _queries(advice: Advice) -> Table:
    grid = Table("query")
    for heading in ("times", "files now", "read now", "after"):
        grid.add_column(heading, justify="right")
    for one in advice.queries:
        after = "" if one.after is None else _share(one.after)
        grid.add_row(one_line(one.text), number(one.times), number(one.files), _share(one.now), after)
    return grid


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"
