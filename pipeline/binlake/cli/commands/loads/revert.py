"""``binlake revert``: transactions of the source undone in the lake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.table import Table as Grid

from binlake.cli.commands.reads.query import text
from binlake.cli.options import LakeConf, refuse_question
from binlake.cli.table_options import chosen, shared
from binlake.cli.text import epoch_window, number, say, say_json, terminal
from binlake.cli.typer_extras import options_of
from binlake.decode.order import binlog_order
from binlake.proof.history.planned import BeforeImages, Means, RevertPlan, carry_out, plan_revert
from binlake.proof.history.revert import RowRevert, TablePlan
from binlake.proof.history.selection import ChangeSelection
from binlake.settings import Settings
from binlake.source.source_log import source_log
from binlake.tables.catalog import CatalogTable
from binlake.tables.other_rows import having
from hudilake.errors import ConfigError, reversed_window
from hudilake.format.definition.kind_support import TableOperation
from hudilake.table.directory import BrokenTable
from hudilake.wording import counted

Ids = Annotated[list[str] | None, typer.Option("--transaction", help="A GTID or transaction id; may be repeated.")]
First = Annotated[str | None, typer.Option("--from-position", help="The first position, as mysql-bin.000003:4711.")]
Last = Annotated[str | None, typer.Option("--to-position", help="The last position, inclusive.")]
Since = Annotated[str | None, typer.Option("--since", help="Changes from 2026-11-21T05:30 (UTC, source's time) on.")]
Until = Annotated[str | None, typer.Option("--until", help="Changes before this time.")]
OfTables = Annotated[list[str] | None, typer.Option("--table", help="Only this table; may be repeated.")]
Before = Annotated[
    BeforeImages, typer.Option("--before-images", help="Where before images come from; the lake knows positions only.")
]


class _Range:
    """The options that choose changes, before the epoch of their positions is known."""

    def __init__(
        self, ids: list[str] | None, first: str | None, last: str | None, since: str | None, until: str | None
    ) -> None:
        self._ids, self._first, self._last = ids, first, last
        self._since, self._until = since, until

    def selection(self, epoch: int) -> ChangeSelection:
        """The selection. Raises ConfigError."""
        first, last = _order(self._first, epoch), _order(self._last, epoch)
        if first is not None and last is not None and last < first:
            raise reversed_window(self._first, self._last)
        times = epoch_window(self._since, self._until)
        selection = ChangeSelection(frozenset(self._ids or ()), first, last, *times)
        if selection.is_empty:
            raise ConfigError(
                "nothing is selected",
                do_next="give --transaction, or --from-position and --to-position, or --since and --until",
            )
        return selection


def selected(
    transaction: Ids = None,
    from_position: First = None,
    to_position: Last = None,
    since: Since = None,
    until: Until = None,
) -> _Range:
    """The options that choose changes; a change must meet all of them."""
    return _Range(transaction, from_position, to_position, since, until)


@options_of(chosen_range=selected)
def revert(
    conf: LakeConf,
    chosen_range: _Range,
    table: OfTables = None,
    before_images: Before = BeforeImages.KAFKA,
    by_column: Annotated[
        bool, typer.Option("--by-column", help="In rows changed later, set back the columns not changed later.")
    ] = False,
    leave_conflicts: Annotated[
        bool, typer.Option("--leave-conflicts", help="Revert the other rows if some cannot be set back.")
    ] = False,
    kafka_records: Annotated[
        int, typer.Option("--kafka-records", help="The most records to read from Kafka.", min=1)
    ] = 5_000_000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print each row and cell and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON line for every row, and ask nothing: give --yes too.")
    ] = False,
) -> None:
    """Undo transactions of the source in the lake, each table in a commit. Later changes are kept."""
    refuse_question(as_json=as_json, yes=yes, dry_run=dry_run)
    settings = Settings.load(conf)
    selection = chosen_range.selection(settings.source.epoch)
    means = Means(before_images, source_log(settings), kafka_records, by_column)
    plan = plan_revert(settings, _places(settings, table), selection, means)
    _show(plan, as_json=as_json)
    if dry_run or not (plan.written or plan.conflicts):
        return
    if not yes and not typer.confirm("Revert these rows?"):
        raise typer.Exit(1)
    for place, instant in carry_out(settings, plan, shared(settings, "revert"), leave_conflicts=leave_conflicts):
        if as_json:
            _dump({"table": place.name, "commit": instant})
        elif instant is not None:
            say(f"{place.name}: commit {instant}")


def _places(settings: Settings, names: list[str] | None) -> list[CatalogTable]:
    places = []
    for place in having(chosen(settings, names), TableOperation.REVERT, named=bool(names)):
        if isinstance(place, BrokenTable):
            raise place.error
        places.append(place)
    return places


def _order(place: str | None, epoch: int) -> int | None:
    if place is None:
        return None
    file, _, position = place.rpartition(":")
    try:
        return binlog_order(epoch, file, int(position))
    except (ValueError, OverflowError) as error:
        raise ConfigError("this is no position", do_next="write mysql-bin.000003:4711", position=place) from error


# -- the plan ---------------------------------------------------------------------------------------------------------


def _show(plan: RevertPlan, *, as_json: bool) -> None:
    if as_json:
        for place, table in plan.tables:
            for row in table.rows:
                _dump({"table": place.name, **_fields(row)})
        return
    ids = ", ".join(plan.order.transactions) or "no transaction ids"
    say(f"{plan.order.what}: {counted(len(plan.changes.rows), 'row')}; {ids}")
    for place, table in plan.tables:
        _print(place.name, table)
    for record in plan.changes.not_applied:
        say(f"  nothing to undo in the lake: {record.name}, {record.why}")


def _print(name: str, plan: TablePlan) -> None:
    done = f", {number(plan.done_before)} set back before" if plan.done_before else ""
    written = counted(len(plan.written), "row", "is", "are")
    say(f"{name}: {written} set back, {counted(len(plan.conflicts), 'row', 'has', 'have')} conflicts{done}")
    grid = Grid("key", "partition", "what", "column", "now", "then")
    for row in plan.rows:
        for cells in _cells(row):
            grid.add_row(row.row.key, row.row.path, *cells, style="yellow" if cells[0].startswith("left") else None)
    if grid.row_count:
        terminal().print(grid, markup=False)


def _cells(row: RowRevert) -> list[tuple[str, str, str, str]]:
    what = _what(row)
    cells = [(what, name, _shown(now), _shown(then)) for name, (now, then) in row.undone.cells.items()]
    cells += [(f"left: {conflict.obstacle.value}", conflict.column or "", "", "") for conflict in row.conflicts]
    return cells


def _what(row: RowRevert) -> str:
    if row.undone.done_before:
        return "set back before"
    if not row.undone.changes_row:
        return "left" if row.conflicts else "same values" if row.undone.is_written else "nothing to do"
    if row.undone.then is None:
        return "delete"
    return "insert" if row.undone.now is None else "set back"


def _shown(value: object) -> str:
    return "null" if value is None else text(value)


def _fields(row: RowRevert) -> dict[str, Any]:
    cells = {name: {"now": now, "then": then} for name, (now, then) in row.undone.cells.items()}
    conflicts = [{"why": c.obstacle.value, "column": c.column} for c in row.conflicts]
    return {
        "key": row.row.key,
        "partition": row.row.path,
        "what": _what(row),
        "cells": cells,
        "conflicts": conflicts,
        "order": row.undone.order if row.undone.is_written else None,
    }


def _dump(fields: Mapping[str, Any]) -> None:
    say_json(fields, text)
