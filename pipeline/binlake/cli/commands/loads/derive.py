"""``binlake derive``: wide tables brought up to date with their tables of cells, derived anew, or compared."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from binlake.cli.options import LakeConf
from binlake.cli.reports import report_error
from binlake.cli.text import duration, number, say, say_json
from binlake.decode.changes import SourceTable
from binlake.hbase.derive.check import WideCheck, check_wide
from binlake.hbase.derive.derivation import Deriver, deriving
from binlake.hbase.derive.pairs import DerivedPair, derived_pairs
from binlake.hbase.derive.run import DerivationResult
from binlake.hbase.derive.sweep import Sweeper
from binlake.settings import Settings
from binlake.tables.catalog import did_you_mean
from hudilake.errors import ConfigError, CorruptDataError, LakeError
from hudilake.table.table import HudiTable
from hudilake.wording import counted

WideTables = Annotated[
    list[str] | None,
    typer.Argument(help="Wide tables, as database.table; all wide tables if none.", metavar="TABLE"),
]


def derive(
    conf: LakeConf,
    tables: WideTables = None,
    everything: Annotated[bool, typer.Option("--all", help="Derive every row anew, not only what is missing.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare every row with its cells instead; change nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON line for every table.")] = False,
) -> None:
    """Derive the rows of wide tables that their tables of cells have changed since, and those whose cells have expired.
    The stream does it by itself and may run at the same time."""
    settings, code = Settings.load(conf), 0
    pairs = _chosen(settings, tables)
    if not pairs and not as_json:
        say("the settings derive no wide table")
    with deriving(settings) as deriver:
        for pair in pairs:
            try:
                if check:
                    code = code or _compare(deriver, pair, as_json=as_json)
                else:
                    _print(deriver.derive(pair, anew="it was asked for" if everything else ""), as_json=as_json)
                    swept = Sweeper(deriver).sweep(pair)
                    if swept.rows:
                        _print(swept, as_json=as_json, swept=True)
            except LakeError as error:
                code = report_error(str(pair.wide), error, code)
    raise typer.Exit(code)


def _chosen(settings: Settings, names: list[str] | None) -> list[DerivedPair]:
    """The wide tables that a command is for. Raises ConfigError for a name of none."""
    known = {str(pair.wide): pair for pair in derived_pairs(settings)}
    if unknown := [name for name in names or known if name not in known]:
        raise ConfigError(
            "the settings derive no such wide table",
            do_next=did_you_mean(unknown[0], known) or "tables.cells has none: add it there",
            table=unknown[0],
        )
    return [known[name] for name in names or known]


def _compare(deriver: Deriver, pair: DerivedPair, *, as_json: bool) -> int:
    """Compare a wide table and tell the result; the exit code."""
    root = deriver.lake.root
    places = [root.sub(rules.path) for rules in (pair.cells_rules, pair.wide_rules)]
    if not all(HudiTable.exists(place) for place in places):
        checked = WideCheck(why="the table of cells or the wide table does not exist yet")
    else:
        cells, wide = map(HudiTable.open, places)
        checked = check_wide(pair, cells, wide, deriver.pool)
    _print_check(pair.wide, checked, as_json=as_json)
    return CorruptDataError.exit_code if checked.wrong else 0


def _print(done: DerivationResult, *, as_json: bool, swept: bool = False) -> None:
    if as_json:
        names = ("rows", "upserts", "gone", "faults", "why", "took_ms", "instants")
        say_json({"table": str(done.wide), **{name: getattr(done, name) for name in names}, "swept": swept})
        return
    which = "rows with cells that have expired" if swept else "rows that were touched"
    why = f"every row, because {done.why}" if done.why else which
    counts = f"{number(done.upserts)} written, {number(done.gone)} deleted, {number(done.faults)} cells quarantined"
    took = duration(done.took_ms)
    say(
        f"{done.wide}: {counted(done.rows, 'row')} derived ({why}): {counts}; "
        f"{counted(len(done.instants), 'commit')}, {took}"
    )


def _print_check(wide: SourceTable, checked: WideCheck, *, as_json: bool) -> None:
    if as_json:
        say_json({"table": str(wide), **dataclasses.asdict(checked)})
        return
    if checked.why:
        say(f"{wide}: not compared: {checked.why}")
        return
    wrong = f"{number(checked.missing)} missing, {number(checked.surplus)} too many, {number(checked.differing)} differ"
    verdict = wrong if checked.wrong else "all as the cells have them"
    later = f"; {counted(checked.waiting, 'row', 'waits', 'wait')} to be derived" if checked.waiting else ""
    later += f"; {counted(checked.unswept, 'row', 'waits', 'wait')} for a sweep" if checked.unswept else ""
    say(f"{wide}: {counted(checked.rows, 'row')} compared: {verdict}{later}")
    for key in checked.keys:
        say(f"  {key}")
    if checked.wrong:
        say("  binlake derive --all writes them anew")
