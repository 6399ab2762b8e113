"""The ``binlake`` command: arguments in, exit code out."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

from pipeline.cli.commands.audit import audit
from pipeline.cli.commands.check import exit_code, print_checks, run_checks
from pipeline.cli.commands.compact import compact
from pipeline.cli.commands.dump import dump
from pipeline.cli.commands.explain import explain
from pipeline.cli.commands.fsck import fsck, repair
from pipeline.cli.commands.inspect import Inspection, print_inspection
from pipeline.cli.commands.quarantine import quarantine
from pipeline.cli.commands.query import query
from pipeline.cli.commands.replay import replay
from pipeline.cli.commands.restore import restore_table
from pipeline.cli.commands.retire import archive_tables, clean_tables
from pipeline.cli.commands.run import run as run_settings
from pipeline.cli.commands.savepoint import savepoint
from pipeline.cli.commands.status import status
from pipeline.cli.display import make_display
from pipeline.cli.failure import print_error
from pipeline.cli.logs import console_log
from pipeline.cli.tables import Conf as LakeConf
from pipeline.cli.tables import TableName
from pipeline.cli.text import terminal
from pipeline.errors import BinlakeError
from pipeline.settings import Settings, json_schema

app = typer.Typer(
    name="binlake",
    help="Keep Apache Hudi tables in step with MySQL, by its change events.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Conf = Annotated[Path, typer.Argument(help="The settings file (YAML).", metavar="CONF")]


@app.callback()
def common(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log details too, on standard error.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Log only warnings and errors.")] = False,
) -> None:
    """Options before the command; ``main`` evaluates --debug itself."""
    if verbose and quiet:
        raise typer.BadParameter("--verbose and --quiet exclude each other")
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    context.with_resource(console_log(level))


@app.command()
def check(
    conf: Conf,
    show: Annotated[bool, typer.Option("--show", help="Print all settings in effect, secrets masked.")] = False,
    kafka_timeout_s: Annotated[float, typer.Option(help="How long Kafka may take for each answer, in seconds.")] = 10.0,
) -> None:
    """Check everything that would stop the stream: settings, Kafka, rights, storage, buckets. Changes nothing."""
    settings, console = Settings.load(conf), terminal()
    if show:
        text = yaml.safe_dump(settings.effective(), sort_keys=False, allow_unicode=True)
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    checks = run_checks(settings, kafka_timeout_s=kafka_timeout_s)
    print_checks(checks, console)
    raise typer.Exit(exit_code(checks))


@app.command()
def run(
    conf: Conf,
    once: Annotated[bool, typer.Option("--once", help="Take the records that are there now, then stop.")] = False,
    live: Annotated[bool, typer.Option("--display/--no-display", help="Show a live table, or print lines.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON line for every batch.")] = False,
    log_json: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a JSON line for every commit, failure and batch; - for stderr."),
    ] = None,
    skip_missing: Annotated[
        bool,
        typer.Option("--skip-missing", help="Go on without offsets that Kafka has deleted; the commits record them."),
    ] = False,
) -> None:
    """Run the stream. SIGTERM and Ctrl-C finish the batch in hand, then stop."""
    settings = Settings.load(conf)
    display = make_display(settings.name, terminal(), live=live, as_json=as_json)
    run_settings(settings, display, once=once, log_json=log_json, skip_missing=skip_missing)


@app.command()
def inspect(
    table: TableName,
    conf: LakeConf = None,
    instants: Annotated[int, typer.Option(help="How many of the newest instants to print.", min=0)] = 20,
    slices: Annotated[int, typer.Option(help="How many file slices to print, the largest first.", min=0)] = 50,
) -> None:
    """Print a table's configuration, timeline and file slices."""
    settings = Settings.load(conf) if conf else None
    print_inspection(Inspection.of(table, settings), terminal(), instants=instants, slices=slices)


@app.command("config-schema")
def config_schema() -> None:
    """Print the JSON schema of the settings file."""
    sys.stdout.write(json_schema() + "\n")


app.command()(query)
app.command()(explain)
app.command()(fsck)
app.command()(repair)
app.command()(audit)
app.command()(status)
app.command()(compact)
app.command()(replay)
app.command()(dump)
app.command("clean")(clean_tables)
app.command("archive")(archive_tables)
app.command("restore")(restore_table)
app.add_typer(savepoint, name="savepoint")
app.add_typer(quarantine, name="quarantine")


def main() -> None:
    """Run the command; an error that binlake raised on purpose becomes its text and its exit code."""
    try:
        app()
    except BinlakeError as error:
        if "--debug" in sys.argv[1:]:
            raise
        print_error(error, terminal(stderr=True))
        sys.exit(error.exit_code)
