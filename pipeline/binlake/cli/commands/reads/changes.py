"""``binlake changes``: the rows that commits of a table inserted, updated and deleted."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table as Grid

from binlake.cli.commands.reads.query import objects_of, text
from binlake.cli.table_options import Conf, TableName, storage_of
from binlake.cli.text import json_line, say, terminal
from binlake.cli.until_stopped import until_stopped
from binlake.tables.catalog import did_you_mean
from hudilake.clock import format_instant, now_ms
from hudilake.errors import ConfigError, reversed_window
from hudilake.query.changes.feed import ChangeFeed
from hudilake.query.changes.position import ChangePosition, position_at
from hudilake.read import instant_of
from hudilake.read.query import EARLIEST
from hudilake.table.table import HudiTable
from hudilake.wording import counted

Since = Annotated[
    str | None,
    typer.Option("--since", help=f"Begin behind the commits that completed up to this moment; {EARLIEST}: with all."),
]
PositionFile = Annotated[
    Path | None,
    typer.Option(
        "--position",
        help="Begin at the position in this file, if it exists, and write it after what was printed. "
        "A run that is killed prints the last lines again.",
    ),
]
_WORDS = {"i": "insert", "u": "update", "d": "delete"}


class ChangeFormat(StrEnum):
    """How changes are printed."""

    TABLE = "table"
    JSON = "json"


def changes(
    table: TableName,
    conf: Conf = None,
    since: Since = None,
    until: Annotated[str | None, typer.Option("--until", help="No commits that completed later than this.")] = None,
    position: PositionFile = None,
    columns: Annotated[
        str | None, typer.Option("--columns", help="Compare and print these columns, separated by commas.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for new commits, until SIGTERM or Ctrl-C.")] = False,
    form: Annotated[ChangeFormat, typer.Option("--format", help="Print a table, or JSON lines.")] = ChangeFormat.TABLE,
    rows: Annotated[int, typer.Option("--rows", help="The most changes that a table shows.", min=1)] = 1000,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Print the rows that commits inserted, updated and deleted, each with its former values. Changes nothing."""
    form = ChangeFormat.JSON if as_json else form
    if follow and form is ChangeFormat.TABLE:
        raise ConfigError("a table cannot follow", do_next="give --format json", table=table)
    begin = None if since is None else "" if since == EARLIEST else instant_of(since)
    end = None if until is None else instant_of(until)
    if begin is not None and end is not None and end < begin:
        raise reversed_window(since, until)
    opened = HudiTable.open(storage_of(table, conf))
    feed = ChangeFeed(
        opened,
        None if columns is None else _named(columns, opened),
        _begin(opened, begin, position),
        end,
        follow=follow,
    )
    if form is ChangeFormat.TABLE:
        if _print(feed, rows) and position is not None:
            _keep(position, feed)
        return
    kept = (lambda: None) if position is None else lambda: _keep(position, feed)
    until_stopped(lambda stop: _write(feed, stop, kept))


def _named(columns: str, table: HudiTable) -> list[str]:
    """The names of ``--columns``. Raises ConfigError for one that the table does not have."""
    names = [name.strip() for name in columns.split(",")]
    for name in names:
        if name not in table.schema.names:
            near = did_you_mean(name, table.schema.names)
            raise ConfigError("the table has no such column", do_next=near or "correct --columns", column=name)
    return names


def _begin(table: HudiTable, since: str | None, position: Path | None) -> ChangePosition:
    """Where to begin; ``since`` has 17 digits, or none for all. Raises ConfigError unless it is said once, for a moment
    that is to come, and for a place that can keep no position."""
    if position is not None and (position.is_dir() or not position.absolute().parent.is_dir()):
        why = "the position is kept in a file, and this is no place for one"
        raise ConfigError(why, do_next="name a file in a directory that is there", path=position)
    if position is not None and position.exists():
        if since is not None:
            raise ConfigError(
                "the file has a position, and --since names another begin",
                do_next="leave out --since, or remove the file",
                path=str(position),
            )
        return ChangePosition.from_json(position.read_text())
    if since is None:
        why = "no begin is given" if position is None else "the file of the position does not exist yet"
        raise ConfigError(why, do_next=f"give --since {EARLIEST}, or --since with a moment")
    newest = max((one.completion_time or "" for one in table.timeline.completed()), default="")
    if since > max(newest, format_instant(now_ms())):  # commits may complete until then
        raise ConfigError("the moment of --since is to come", do_next="give one that is over", since=since)
    return position_at(table, since)


def _keep(path: Path, feed: ChangeFeed) -> None:
    """Replace the file by the position of the feed."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(feed.position.to_json() + "\n")
    beside.replace(path)


def _write(feed: ChangeFeed, stop: threading.Event, keep: Callable[[], None]) -> None:
    """JSON lines; the position is kept after each batch."""
    feed.stop = stop
    for batch in feed:
        for change in objects_of(batch):
            sys.stdout.write(json_line(change, text))
        sys.stdout.flush()
        keep()
        if stop.is_set():
            return
    keep()


def _print(feed: ChangeFeed, most: int) -> bool:
    """A table of changes; False if there are more of them."""
    grid = Grid("commit", "change", "values")
    shown = 0
    for batch in feed:
        for change in objects_of(batch.slice(0, most - shown)):
            grid.add_row(change["commit"], _WORDS[change["op"]], _values(change["before"], change["after"]))
        if shown + batch.num_rows > most:
            terminal().print(grid, markup=False)
            say(f"the first {counted(most, 'change')}; more with --rows or --format json")
            return False
        shown += batch.num_rows
    terminal().print(grid, markup=False)
    say(counted(shown, "change"))
    return True


def _values(before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    """The values of a row; of an update those that changed, with what they were."""
    if before is None or after is None:
        return ", ".join(f"{name}={_cell(value)}" for name, value in (before or after or {}).items())
    same, changed = [], []
    for name, value in after.items():
        if repr(value) == repr(before[name]):
            same.append(f"{name}={_cell(value)}")
        else:
            changed.append(f"{name}={_cell(before[name])} -> {_cell(value)}")
    return ", ".join((*changed, *same))


def _cell(value: object) -> str:
    return "null" if value is None else text(value)
