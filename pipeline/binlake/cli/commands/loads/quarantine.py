"""``binlake quarantine``: the records that could not be applied, and their way back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer
from rich.table import Table as Grid

from binlake.cli.options import LakeConf
from binlake.cli.reports import report_error
from binlake.cli.text import epoch_window, moment, number, say, say_json, terminal
from binlake.cli.typer_extras import options_of
from binlake.load.replay.quarantine import replay
from binlake.load.replay.quarantine_records import (
    QuarantineEntry,
    QuarantineSelection,
    ReplayResult,
    held_records,
    named,
)
from binlake.position.ledger import Ledger
from binlake.rows.upsert.prepare import REASONS
from binlake.settings import Settings
from binlake.tables.catalog import did_you_mean
from binlake.tables.seal import Seal
from hudilake.errors import ConfigError
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable
from hudilake.wording import counted

Records = Annotated[
    list[str] | None,
    typer.Argument(help="Records as topic/partition:offset; all if none.", metavar="RECORD", show_default=False),
]
Reasons = Annotated[list[str] | None, typer.Option("--reason", help="Only records with this reason; may be repeated.")]
OfTables = Annotated[
    list[str] | None,
    typer.Option("--table", help="Only records of this database.table (- for none); may be repeated."),
]
Since = Annotated[str | None, typer.Option("--since", help="Quarantined from 2026-11-21 or 2026-11-21T05:30 (UTC) on.")]
Until = Annotated[str | None, typer.Option("--until", help="Quarantined before this time.")]


def selected(
    records: Records = None,
    reason: Reasons = None,
    table: OfTables = None,
    since: Since = None,
    until: Until = None,
) -> QuarantineSelection:
    """The records that the options choose, without those that were replayed. Raises ConfigError."""
    since_ms, until_ms = epoch_window(since, until)
    return QuarantineSelection(
        reasons=frozenset(reason or ()),
        tables=frozenset(table or ()),
        names=frozenset(map(named, records or ())),
        since_ms=since_ms,
        until_ms=until_ms,
    )


quarantine = typer.Typer(no_args_is_help=True, help="List, show and replay records that could not be applied.")

All = Annotated[bool, typer.Option("--all", help="Include records that were replayed.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]


@quarantine.command("list")
@options_of(selection=selected)
def list_records(
    conf: LakeConf,
    selection: QuarantineSelection,
    everything: All = False,
    each: Annotated[bool, typer.Option("--records", help="Print a line for every record.")] = False,
    as_json: AsJson = False,
) -> None:
    """Count the quarantined records by reason and table, or list each of them."""
    _refuse_unknown(conf, selection)
    records = _found(conf, replace(selection, replayed=everything), payload=False)
    if as_json:
        for line in map(_fields, records) if each else map(vars, reason_groups(records)):
            say_json(line)
    elif each:
        for held in records:
            done = f"; replayed {moment(held.replayed_ms)}" if held.replayed_ms is not None else ""
            say(f"{held.name}: {held.reason}, {held.source_table or '-'}, {moment(held.quarantined_ms)}{done}")
    else:
        _print_groups(reason_groups(records))
        if not records and not HudiTable.exists(_place(Settings.load(conf))):
            say("there is no quarantine table: none was needed, or it was deleted, which binlake audit finds")


@quarantine.command("show")
@options_of(selection=selected)
def show(
    conf: LakeConf,
    selection: QuarantineSelection,
    everything: All = False,
    limit: Annotated[int, typer.Option(help="How many records to print.", min=1)] = 10,
    as_json: AsJson = False,
) -> None:
    """Print whole records: coordinates, reason, key and payload."""
    _refuse_unknown(conf, selection)
    wanted = replace(selection, replayed=everything or bool(selection.names))
    chosen = _found(conf, wanted, payload=True)
    for held in chosen[:limit]:
        if as_json:
            payload = {"key": _plain(held.key), "value": _plain(held.value)}
            say_json({**_fields(held), **payload})
        else:
            _print_record(held)
    if not as_json and len(chosen) > limit:
        say(f"and {number(len(chosen) - limit)} more; see --limit")


@quarantine.command("replay")
@options_of(selection=selected)
def replay_records(
    conf: LakeConf,
    selection: QuarantineSelection,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the records that would be tried.")] = False,
    even_too_old: Annotated[
        bool, typer.Option("--even-too-old", help="Include records whose row may have been deleted since.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Apply the records that can be applied now, in their original order. The stream may run at the same time."""
    _refuse_unknown(conf, selection)
    if dry_run:
        groups = reason_groups(_found(conf, selection, payload=False))
        for line in map(vars, groups) if as_json else ():
            say_json(line)
        if not as_json:
            _print_groups(groups)
        return
    done = replay(Settings.load(conf), selection, even_too_old=even_too_old)
    if as_json:
        errors = {name: str(error) for name, error in done.errors.items()}
        say_json({**vars(done), "errors": errors})
    else:
        _print_outcome(done)
    code = 0
    for name, error in done.errors.items():
        code = report_error(name, error, code)
    raise typer.Exit(code)


def _found(conf: LakeConf, selection: QuarantineSelection, *, payload: bool) -> list[QuarantineEntry]:
    settings = Settings.load(conf)
    return held_records(_place(settings), selection, Seal(settings.quarantine.secret()), payload=payload)


def _place(settings: Settings) -> Storage:
    """Where the quarantine table of a stream is."""
    return open_storage(settings.lake.uri, settings.lake.storage_options()).sub(settings.quarantine_path)


def _refuse_unknown(conf: LakeConf, selection: QuarantineSelection) -> None:
    """Raise ConfigError for a record, a reason or a table that the quarantine has never had, unless another record
    could still come with that reason or of that table."""
    if not (selection.reasons or selection.tables or selection.names):
        return
    settings = Settings.load(conf)
    ever = _found(conf, QuarantineSelection(replayed=True), payload=False)
    ledger = Ledger.load(open_storage(settings.state_uri, settings.state_options()), settings.name)
    met = {str(table) for table in ledger.tables} if ledger is not None else set()
    for what, asked, known in (
        ("reason", selection.reasons, {*REASONS, *(held.reason for held in ever)}),
        ("table", selection.tables, {"-", *met, *(held.source_table or "-" for held in ever)}),
        ("record", selection.names, {held.name for held in ever}),
    ):
        for name in sorted(asked - known):
            raise ConfigError(
                f"the quarantine has no such {what}",
                do_next=did_you_mean(name, known - {"-"}) or "binlake quarantine list shows what there is",
                **{what: name},
            )


@dataclass
class ReasonGroup:
    """The records of one reason and table: how many wait and were replayed, and when the first and the last came."""

    reason: str
    table: str
    waiting: int
    replayed: int
    first_ms: int
    last_ms: int


def reason_groups(records: Sequence[QuarantineEntry]) -> list[ReasonGroup]:
    """By reason and table, the greatest first."""
    groups: dict[tuple[str, str], ReasonGroup] = {}
    for held in records:
        key, when = (held.reason, held.source_table or "-"), held.quarantined_ms
        group = groups.setdefault(key, ReasonGroup(*key, 0, 0, when, when))
        group.waiting += held.replayed_ms is None
        group.replayed += held.replayed_ms is not None
        group.first_ms, group.last_ms = min(when, group.first_ms), max(when, group.last_ms)
    return sorted(groups.values(), key=lambda g: (-g.waiting, g.reason, g.table))


def _print_groups(groups: Sequence[ReasonGroup]) -> None:
    if not groups:
        say("nothing in quarantine matches")
        return
    grid = Grid("reason", "table")
    for heading in ("waiting", "replayed", "first", "last"):
        grid.add_column(heading, justify="right")
    for g in groups:
        first, last = moment(g.first_ms), moment(g.last_ms)
        grid.add_row(g.reason, g.table, number(g.waiting), number(g.replayed), first, last)
    terminal().print(grid)


def _fields(held: QuarantineEntry) -> dict[str, Any]:
    names = ("topic", "partition", "offset", "kafka_ms", "reason", "detail", "source_table", "quarantined_ms")
    return {name: getattr(held, name) for name in (*names, "replayed_ms", "replayed_to")}


def _print_record(held: QuarantineEntry) -> None:
    say(f"{held.name}  {held.reason}  {held.source_table or 'no table'}")
    say(f"  detail: {_printable(held.detail)}")
    say(f"  in Kafka {moment(held.kafka_ms)}, quarantined {moment(held.quarantined_ms)}")
    if held.replayed_ms is not None:
        say(f"  replayed {moment(held.replayed_ms)}, commit {held.replayed_to or 'none needed'}")
    for name, payload in (("key", held.key), ("value", held.value)):
        say(f"  {name}:" + "".join(f"\n    {line}" for line in readable(payload).split("\n")))


def readable(payload: bytes | None) -> str:
    """Bytes for people: JSON indented, other text as it is, what is no text as escapes; nothing that moves a cursor."""
    if payload is None:
        return "null"
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return repr(payload)[2:-1]
    try:
        return _printable(json.dumps(json.loads(text), indent=2, ensure_ascii=False))
    except (ValueError, RecursionError):
        return _printable(text)


def _plain(payload: bytes | None) -> str | None:
    return None if payload is None else payload.decode(errors="backslashreplace")


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def _print_outcome(done: ReplayResult) -> None:
    say(f"{counted(done.selected, 'record')} selected, {number(done.applied)} applied in their order")
    counts = (
        (done.found, "were applied by an earlier run that died before it marked them"),
        (done.filtered, "rightly change no row"),
        (done.failed, "failed again and stay; binlake quarantine list shows why"),
        (done.left_to_stream, "stay, because the stream will deliver them itself"),
        (done.too_old, "stay, because a newer delete of their row may be forgotten; --even-too-old applies them"),
    )
    for count, words in counts:
        if count:
            say(f"  {number(count)} {words}")
    for table, commits in done.commits.items():
        say(f"  {table}: commit {', '.join(commits)}")
