"""``binlake load``: the first load of tables, straight from the source's server."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, field
from typing import Annotated

import typer

from binlake.cli.options import LakeConf
from binlake.cli.reports import report_error
from binlake.cli.text import duration, number, say, say_json
from binlake.cli.until_stopped import until_stopped
from binlake.load.first.run import FirstLoad, LoadOptions, LoadResult
from binlake.load.first.table_load import LoadProgress
from binlake.position.in_hand import JobProgress
from binlake.settings import Settings
from hudilake.clock import monotonic_s
from hudilake.storage import open_storage
from hudilake.wording import counted

SourceTables = Annotated[
    list[str] | None,
    typer.Argument(help="Source tables, as database.table; all that the settings take if none.", metavar="TABLE"),
]
Replace = Annotated[bool, typer.Option("--replace", help="Delete tables that the lake has, and load them anew.")]
Connections = Annotated[int | None, typer.Option(help="Sessions that read side by side.", min=1, max=64)]
ChunkRows = Annotated[int | None, typer.Option(help="Rows of one query, approximately.", min=1)]
CommitRows = Annotated[int | None, typer.Option(help="Rows of one commit, approximately.", min=1)]
RowsPerSecond = Annotated[int | None, typer.Option(help="Read at most so many rows a second.", min=1)]
ConnectorCheck = Annotated[
    bool, typer.Option("--connector-check/--no-connector-check", help="Refuse if nobody reads the server's binlog.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON line for every table, and for its progress.")]
_EVERY_S = 5.0


def load(
    conf: LakeConf,
    tables: SourceTables = None,
    replace: Replace = False,
    connections: Connections = None,
    chunk_rows: ChunkRows = None,
    commit_rows: CommitRows = None,
    rows_per_second: RowsPerSecond = None,
    connector_check: ConnectorCheck = True,
    as_json: AsJson = False,
) -> None:
    """Load tables straight from the source's server, in chunks at one position; the stream goes on from there.

    Stop the stream first. SIGTERM and Ctrl-C finish the commit in hand, then stop; the same command goes on from there,
    after a kill too. Exit code 0: every table is loaded. 75: stopped before that.
    """
    settings = Settings.load(conf)
    given = {"connections": connections, "chunk_rows": chunk_rows, "commit_rows": commit_rows}
    limits = settings.source.database.load.model_copy(update={k: v for k, v in given.items() if v is not None})
    options = LoadOptions(replace, connector_check, limits, rows_per_second)
    lines = _Lines(as_json)

    def work(stop: threading.Event) -> int:
        code = 0
        with lines.hand.noted(open_storage(settings.state_uri, settings.state_options())):
            for result in FirstLoad(settings, options, lines.progress, stop).run(tables or ()):
                lines.hand.end()
                code = lines.result(result, code)
        return code

    raise typer.Exit(until_stopped(work))


@dataclass
class _Lines:
    """What is printed: a line every few seconds while a table is read, and one for its result."""

    as_json: bool
    hand: JobProgress = field(default_factory=lambda: JobProgress("load", "rows"))
    _said_s: float = field(default_factory=monotonic_s)

    def progress(self, progress: LoadProgress) -> None:
        """Say how far a table is, if nothing was said for a while."""
        if progress.table != self.hand.subject:
            self.hand.begin(progress.table, progress.estimate, progress.before)
        self.hand.reach(progress.before + progress.rows, "reads and writes chunks")
        if monotonic_s() - self._said_s < _EVERY_S:
            return
        self._said_s = monotonic_s()
        left, rate = progress.seconds_left, round(progress.rows_per_second)
        if self.as_json:
            more = {"rows_per_second": rate, "seconds_left": None if left is None else round(left)}
            say_json({**asdict(progress), "seconds": round(progress.seconds, 1), "state": "loading", **more})
            return
        rows, rest = number(progress.before + progress.rows), f", {duration(left * 1000)} left" if left else ""
        of = f" of about {number(progress.estimate)}" if progress.before + progress.rows <= progress.estimate else ""
        say(f"{progress.table}: {rows}{of} rows{f', {number(rate)} rows/s' if rate else ''}{rest}")

    def result(self, result: LoadResult, code: int) -> int:
        """Print what became of a table; the exit code, of which the first that is not 0 counts."""
        self._said_s = monotonic_s()
        if self.as_json:
            error = result.error and {"what": result.error.what, "next": result.error.do_next}
            fields = {name: getattr(result, name) for name in LoadResult.__dataclass_fields__}
            say_json({**fields, "seconds": round(result.seconds, 3), "error": error})
        if result.error is not None:
            return report_error(result.table, result.error, code)
        if not self.as_json:
            say(f"{result.table}: {_words(result)}")
        return code or (75 if result.state == "stopped" else 0)


def _words(result: LoadResult) -> str:
    if result.state == "there":
        return f"was loaded before, at {result.position}; nothing to do"
    if result.state == "stopped":
        return f"stopped after {counted(result.before + result.rows, 'row')}; the same command goes on"
    before = f" after {number(result.before)} of an earlier run" if result.before else ""
    rate = round(result.rows / max(result.seconds, 1e-3))
    speed = f", {number(rate)} rows/s" if rate else ""
    took = f"in {duration(result.seconds * 1000)}{speed}, {counted(result.commits, 'commit')}"
    return f"{counted(result.rows, 'row')} loaded{before} {took}; the stream goes on from {result.position}"
