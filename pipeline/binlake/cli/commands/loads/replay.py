"""``binlake replay``: dumps of change events into the tables."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

import typer

from binlake.cli.display import TableTotals, Totals, make_display
from binlake.cli.options import LakeConf
from binlake.cli.text import epoch_ms, number, say, say_json, terminal
from binlake.cli.typer_extras import options_of
from binlake.cli.until_stopped import until_stopped
from binlake.decode.changes import SourceTable
from binlake.load.replay.engine import LocalEngine, SparkEngine
from binlake.load.replay.replay_dumps import (
    OpenWorkers,
    ReplayReport,
    ReplayWorkers,
    Rewritten,
    replay_dumps,
    replay_progress,
)
from binlake.rows.upsert.outcomes import OUTCOMES
from binlake.settings import Settings
from binlake.source.dump_layout import Window, hour_text
from binlake.source.scan_read import Scan
from binlake.stream.spark.session import spark_session
from binlake.stream.spark.tasks import map_in_tasks
from hudilake.errors import ConfigError, reversed_window
from hudilake.services.planned import one_by_one
from hudilake.storage import open_storage
from hudilake.wording import counted

ScanOf = Annotated[
    str | None,
    typer.Option("--scan", help="The files are exported scans of this namespace.table, not dumps.", metavar="TABLE"),
]
Files = Annotated[str, typer.Option("--files", help="Which files of --scan below --from: a glob pattern.")]
At = Annotated[
    str | None,
    typer.Option("--at", help="When the scan was made: 2026-11-21T05:30 (UTC); default: each file's last change."),
]


def scan_options(scan: ScanOf = None, files: Files = "*", at: At = None) -> Scan | None:
    """The scans that the options name; None for dumps. Raises ConfigError."""
    if scan is None:
        if files != "*" or at is not None:
            raise ConfigError("--files and --at belong to --scan", do_next="give --scan with the name of the table")
        return None
    namespace, _, table = scan.replace(":", ".").rpartition(".")
    source = SourceTable.named(namespace or "default", table)
    if source is None:
        raise ConfigError("this is no name of a table", do_next="write namespace.table", scan=scan)
    return Scan(source, files, epoch_ms(at))


def check_declared(settings: Settings, scan: Scan) -> None:
    """Raise ConfigError if the settings have no table of cells for a scan."""
    known = [store.source for store in settings.tables.cells]
    if str(scan.table) not in known:
        raise ConfigError(
            f"no entry of tables.cells has the source {scan.table}",
            do_next=f"give one of {', '.join(known)}" if known else "declare the table in tables.cells",
            scan=str(scan.table),
        )


_HOURS_A_DAY = 24
_NAMED = 5

From = Annotated[str | None, typer.Option("--from", help="Root of the dump; default: dump.uri of the settings.")]
Hour = Annotated[str | None, typer.Option(help="One hour (UTC): 2026-11-21T05.")]
Day = Annotated[str | None, typer.Option(help="One day (UTC): 2026-11-21.")]
Since = Annotated[str | None, typer.Option(help="From this hour or day on (UTC).")]
Until = Annotated[str | None, typer.Option(help="Up to this hour or day, exclusive (UTC).")]
Changed = Annotated[str, typer.Option("--rewritten", help="Files that changed after their replay: refuse|take|skip.")]
TooOld = Annotated[bool, typer.Option("--even-too-old", help="Include hours older than forgotten deletes.")]
Epoch = Annotated[int | None, typer.Option(help="The epoch of these hours, if source.epoch was raised since then.")]
InProcess = Annotated[bool, typer.Option("--in-process", help="Run without Spark, for a few small files.")]
Live = Annotated[bool, typer.Option("--display/--no-display", help="Show a live table, or print plain lines.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON line for every portion, and one for the result.")]


@options_of(scan=scan_options)
def replay(
    conf: LakeConf,
    scan: Scan | None,
    source: From = None,
    hour: Hour = None,
    day: Day = None,
    since: Since = None,
    until: Until = None,
    rewritten: Changed = "refuse",
    even_too_old: TooOld = False,
    epoch: Epoch = None,
    in_process: InProcess = False,
    live: Live = True,
    as_json: AsJson = False,
) -> None:
    """Apply dumped change events or exported scans to the tables, each file once. The stream may run at the same time.
    SIGTERM and Ctrl-C finish the portion in hand, then stop."""
    settings, window = _of_epoch(Settings.load(conf), epoch), window_of(hour, day, since, until)
    if scan is not None:
        check_declared(settings, scan)
        _without_hours(window)
    workers = _local() if in_process else _on_spark(settings)
    display = make_display(settings.name, terminal(), live=live, as_json=as_json)
    policy = _policy(rewritten)

    hand = replay_progress()

    def work(stop: threading.Event) -> ReplayReport:
        with display, hand.noted(open_storage(settings.state_uri, settings.state_options())):
            return replay_dumps(
                settings,
                source,
                window,
                workers,
                rewritten=policy,
                even_too_old=even_too_old,
                scan=scan,
                on_progress=display.update,
                hand=hand,
                stop=stop,
            )

    report = until_stopped(work)
    print_report(report, as_json=as_json)


def window_of(hour: str | None, day: str | None, since: str | None, until: str | None) -> Window:
    """The hours that the options ask for; all without any. Raises ConfigError."""
    if sum((hour is not None, day is not None, since is not None or until is not None)) > 1:
        raise ConfigError(
            "--hour, --day and --since with --until exclude each other", do_next="give one of the three, or none"
        )
    if hour is not None:
        first = _hour(hour)
        return Window(first, first + 1)
    if day is not None:
        if len(day.strip()) > len("2026-11-21"):
            raise ConfigError("this is not a day", do_next="write 2026-11-21", time=day)
        first = _hour(day)
        return Window(first, first + _HOURS_A_DAY)
    window = Window(None if since is None else _hour(since), None if until is None else _hour(until))
    if window.first is not None and window.end is not None and window.end <= window.first:
        raise reversed_window(since, until)
    return window


def _without_hours(window: Window) -> None:
    if window != Window():
        raise ConfigError("scans are not divided by hours", do_next="give --files to choose some of the files")


def _hour(text: str) -> int:
    try:
        given = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError("this is not a time", do_next="write 2026-11-21 or 2026-11-21T05", time=text) from error
    seconds = int((given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp())
    if seconds % 3600:
        raise ConfigError("dumps are divided by whole hours", do_next="write 2026-11-21 or 2026-11-21T05", time=text)
    return seconds // 3600


def _of_epoch(settings: Settings, epoch: int | None) -> Settings:
    if epoch is None:
        return settings
    if not 0 <= epoch <= settings.source.epoch:
        raise ConfigError(
            "--epoch must lie between 0 and source.epoch", do_next="give another epoch", epoch=settings.source.epoch
        )
    source = settings.source.model_copy(update={"epoch": epoch})
    return settings.model_copy(update={"source": source})


def _policy(text: str) -> Rewritten:
    policies: dict[str, Rewritten] = {"refuse": "refuse", "take": "take", "skip": "skip"}
    if text not in policies:
        raise ConfigError("--rewritten is refuse, take or skip", do_next="give one of these", rewritten=text)
    return policies[text]


def _local() -> OpenWorkers:
    @contextlib.contextmanager
    def opened() -> Iterator[ReplayWorkers]:
        yield ReplayWorkers(LocalEngine, one_by_one)

    return opened


def _on_spark(settings: Settings) -> OpenWorkers:
    @contextlib.contextmanager
    def opened() -> Iterator[ReplayWorkers]:
        session = spark_session(settings)
        try:
            context = session.sparkContext
            yield ReplayWorkers(
                partial(SparkEngine, context), partial(map_in_tasks, context, slots=context.defaultParallelism)
            )
        finally:
            session.stop()

    return opened


# -- the verdict ------------------------------------------------------------------------------------------------------


def print_report(report: ReplayReport, *, as_json: bool = False) -> None:
    """What a replay came to."""
    totals = _totals(report)
    if as_json:
        say_json(_fields(report, totals))
        return
    say(_files_line(report))
    if report.repeated:
        say(f"  {number(report.repeated)} portions that an earlier replay had begun were finished")
    if report.rewritten:
        say(f"  {counted(len(report.rewritten), 'file', 'was', 'were')} written again since: {_names(report)}")
    if not report.events:
        say(
            "nothing to do: the tables hold all of these files"
            if report.found
            else "nothing to do: no such files, though older and newer ones"
        )
    for table in sorted(totals.tables.values(), key=lambda t: t.table):
        say(_table_line(table))
    if report.events:
        other = sum(sum(e.filtered.values()) for e in report.events)
        stray = sum(e.quarantined for e in report.events)
        say(f"  of no table: {number(other)} that change no row, {number(stray)} quarantined")
    if report.stopped:
        say("stopped; the next replay of these hours takes the rest")


def _files_line(report: ReplayReport) -> str:
    hours = sorted({file.hour for file in report.found})
    span = f" of {hour_text(hours[0], report.step)} to {hour_text(hours[-1], report.step)}" if hours else ""
    late = f", {number(report.late)} of them late" if report.late else ""
    return (
        f"{report.uri}: {counted(len(report.found), 'file')}{span}: {number(report.covered)} replayed before, "
        f"{number(len(report.taken))} taken{late}"
    )


def _table_line(t: TableTotals) -> str:
    outcomes = " + ".join(f"{name} {number(getattr(t, name))}" for name in OUTCOMES)
    return f"  {t.table}: read {number(t.events_read)} = {outcomes}; {counted(t.commits, 'commit')}"


def _names(report: ReplayReport) -> str:
    names = [file.path for file in report.rewritten]
    return ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")


def _totals(report: ReplayReport) -> Totals:
    """The sums; of a table that was tried again, the attempt that stands."""
    totals, last = Totals(), dict[tuple[int, str], Any]()
    for event in report.events:
        for part in event.tables:
            last[event.batch_id, part.table] = part
    for part in last.values():
        totals.tables.setdefault(part.table, TableTotals(part.table)).add(part)
    return totals


def _fields(report: ReplayReport, totals: Totals) -> dict[str, Any]:
    counts = ("events_read", *OUTCOMES, "commits", "error")
    return {
        "from": report.uri,
        "found": len(report.found),
        "covered": report.covered,
        "taken": [file.path for file in report.taken],
        "late": report.late,
        "rewritten": [file.path for file in report.rewritten],
        "repeated_portions": report.repeated,
        "stopped": report.stopped,
        "tables": {t.table: {name: getattr(t, name) for name in counts} for t in totals.tables.values()},
    }
