"""The ``binlake`` command: arguments in, exit code out."""

from __future__ import annotations

import difflib
import errno
import logging
import os
import sys
import traceback
from typing import Annotated

import typer

from binlake.cli.exit_codes import EPILOG
from binlake.cli.typer_extras import MARKUP, Lazy, lazy_group
from hudilake.errors import ConfigError, LakeError, TransientError

COMMANDS = (
    Lazy(
        "init",
        "binlake.cli.commands.setup.init",
        "init",
        "Write a first settings file from what Kafka and the database say, and check it.",
    ),
    Lazy(
        "check",
        "binlake.cli.commands.stream.check",
        "check",
        "Check everything that would stop the stream: settings, Kafka, rights, storage, buckets. Changes nothing.",
    ),
    Lazy(
        "run",
        "binlake.cli.commands.stream.run",
        "run_command",
        "Run the stream. SIGTERM and Ctrl-C finish the batch in hand, then stop.",
    ),
    Lazy(
        "inspect",
        "binlake.cli.commands.reads.inspect",
        "inspect",
        "Print a table's configuration, timeline and file slices.",
    ),
    Lazy(
        "config-schema",
        "binlake.cli.commands.stream.config_schema",
        "config_schema",
        "Print the JSON schema of the settings file.",
    ),
    Lazy("query", "binlake.cli.commands.reads.query", "query", "Run an SQL query over one or several tables."),
    Lazy(
        "explain",
        "binlake.cli.commands.reads.explain",
        "explain",
        "Print what an SQL query would read of each table and why, without reading data.",
    ),
    Lazy(
        "changes",
        "binlake.cli.commands.reads.changes",
        "changes",
        "Print the rows that commits inserted, updated and deleted, each with its former values. Changes nothing.",
    ),
    Lazy(
        "cuts",
        "binlake.cli.commands.upkeep.tag",
        "cuts",
        "List the places between two source transactions at which all tables can be read. Changes nothing.",
    ),
    Lazy(
        "layout",
        "binlake.cli.commands.upkeep.layout",
        "layout",
        "Propose the order of a table's rows by the overlap of its files and by queries. Changes nothing.",
    ),
    Lazy(
        "fsck",
        "binlake.cli.commands.proof.fsck",
        "fsck",
        "Check a table against itself: timeline, files, rows, metadata table, offsets. Changes nothing.",
    ),
    Lazy(
        "repair",
        "binlake.cli.commands.proof.fsck",
        "repair",
        "Repair what fsck finds, as far as that loses no rows; what it removes is kept. Stop the stream first.",
    ),
    Lazy(
        "audit",
        "binlake.cli.commands.proof.audit",
        "audit",
        "Account for every record of every commit: read = applied + superseded + filtered + quarantined.",
    ),
    Lazy(
        "verify",
        "binlake.cli.commands.proof.verify",
        "verify",
        "Compare tables with the live source at one position of its binlog, and repair them on demand.",
    ),
    Lazy(
        "status",
        "binlake.cli.commands.stream.status",
        "status",
        "Print the position and lag of the stream, and the state of each table. Changes nothing.",
    ),
    Lazy(
        "console",
        "binlake.cli.commands.reads.console",
        "console",
        "Serve a page for every stream, table and row, on this machine only unless --host says otherwise.",
    ),
    Lazy(
        "top",
        "binlake.cli.commands.reads.top",
        "top",
        "Show the tables of a stream at the terminal, live: the worst first, sorted and filtered by keys.",
    ),
    Lazy(
        "tables",
        "binlake.cli.commands.reads.tables",
        "tables",
        "List the tables of the lake: path, type, index, key and partitions. Changes nothing.",
    ),
    Lazy(
        "table",
        "binlake.cli.commands.stream.table",
        "table",
        "Pause, resume, fetch anew or forget one table while the stream runs.",
    ),
    Lazy(
        "compact",
        "binlake.cli.commands.upkeep.services",
        "compact",
        "Compact the tables that are due, then clean and archive them. The stream may run at the same time.",
    ),
    Lazy(
        "cluster",
        "binlake.cli.commands.upkeep.services",
        "cluster_tables",
        "Lay out anew the rows of the tables that are due. The stream may run at the same time.",
    ),
    Lazy(
        "rebucket",
        "binlake.cli.commands.upkeep.rebucket",
        "rebucket_table",
        "Move the rows of a table to another number of buckets, in one commit. The stream may run at the same time.",
    ),
    Lazy(
        "replay",
        "binlake.cli.commands.loads.replay",
        "replay",
        "Apply dumped change events or exported scans to the tables, each file once. The stream may run at the same "
        "time. SIGTERM and Ctrl-C finish the portion in hand, then stop.",
    ),
    Lazy(
        "load",
        "binlake.cli.commands.loads.load",
        "load",
        "Load tables straight from the source's server, in chunks at one position; the stream goes on from there.",
    ),
    Lazy(
        "backfill",
        "binlake.cli.commands.loads.backfill",
        "backfill",
        "Fill columns of rows from files or a query, each portion once. The stream may run at the same time. "
        "SIGTERM and Ctrl-C finish the portion in hand, then stop; the same command goes on from there.",
    ),
    Lazy(
        "derive",
        "binlake.cli.commands.loads.derive",
        "derive",
        "Derive the rows of wide tables that their tables of cells have changed since, and those whose cells have "
        "expired. The stream does it by itself and may run at the same time.",
    ),
    Lazy(
        "dump",
        "binlake.cli.commands.stream.dump",
        "dump",
        "Write the records of the topics to files under dump.uri, each once; binlake replay reads them. Needs "
        "no Spark. SIGTERM and Ctrl-C finish the files in hand, then stop.",
    ),
    Lazy(
        "clean",
        "binlake.cli.commands.upkeep.services",
        "clean_tables",
        "Delete files that neither the retention, a savepoint nor a pending compaction needs.",
    ),
    Lazy(
        "archive",
        "binlake.cli.commands.upkeep.services",
        "archive_tables",
        "Move old instants of the timeline into the table's history, if there are more than the retention needs.",
    ),
    Lazy(
        "restore",
        "binlake.cli.commands.upkeep.restore",
        "restore_table",
        "Take back every later write of a table, for good. Stop its writers first; its stream delivers again "
        "what went.",
    ),
    Lazy(
        "erase",
        "binlake.cli.commands.upkeep.erase",
        "erase",
        "Erase a row and all its versions from the files of its table, the quarantine and the dumps, for good.",
    ),
    Lazy(
        "why",
        "binlake.cli.commands.reads.why",
        "why",
        "Print every version of a row, where it comes from, and why it won or lost. Changes nothing.",
    ),
    Lazy(
        "lineage",
        "binlake.cli.commands.reads.lineage",
        "lineage",
        "Print where the rows of a table, a commit or a key come from, or which tables a source table feeds. Changes "
        "nothing.",
    ),
    Lazy(
        "revert",
        "binlake.cli.commands.loads.revert",
        "revert",
        "Undo transactions of the source in the lake, each table in a commit. Later changes are kept.",
    ),
    Lazy(
        "cells",
        "binlake.cli.commands.reads.cells",
        "cells",
        "Print the visible cells of a table of cells, or its wide rows, as JSON lines: all versions that a read of the "
        "store has.",
    ),
    Lazy("savepoint", "binlake.cli.commands.upkeep.restore", "savepoint", "Create, delete and list protected commits."),
    Lazy("tag", "binlake.cli.commands.upkeep.tag", "tag", "Create, delete and list named cuts that are kept."),
    Lazy(
        "quarantine",
        "binlake.cli.commands.loads.quarantine",
        "quarantine",
        "List, show and replay records that could not be applied.",
    ),
    Lazy(
        "metastore",
        "binlake.cli.commands.metastore",
        "metastore",
        "Serve the metastore that tells engines which tables there are.",
    ),
)

app = typer.Typer(
    name="binlake",
    cls=lazy_group(COMMANDS),
    help="Keep Apache Hudi tables in step with MySQL, by its change events.",
    context_settings={"help_option_names": ["--help", "-h"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=MARKUP,
    epilog=EPILOG,
)

_ANSWER = "give the option that answers it, such as --yes; --help of the command has it"


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version  # an import of 20 ms

        typer.echo(f"binlake {version('binlake')}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log details too, on standard error.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Log only warnings and errors.")] = False,
) -> None:
    """Options before the command; ``main`` evaluates --debug itself."""
    from binlake.cli.logs import console_log  # not above: the list of commands imports none of this

    if verbose and quiet:
        raise typer.BadParameter("--verbose and --quiet exclude each other")
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    context.with_resource(console_log(level))


def main() -> None:
    """Run the command. An error that binlake raised on purpose becomes a line and its exit code; of any other one the
    traceback goes to a file, and a line says to which. With --debug tracebacks are printed."""
    debug = "--debug" in sys.argv[1:]
    _fill_closed_streams()
    if sys.stdout is None:
        _end(ConfigError("standard output is closed", do_next="direct it to a file, or to /dev/null"), debug=False)
    if debug:  # of Spark's log too
        os.environ.setdefault("BINLAKE_SPARK_LOG", "console")
    try:
        code = app(prog_name="binlake", standalone_mode=False)
    except LakeError as error:
        _end(error, debug=debug)
    except typer.Abort:  # Ctrl-C, or no terminal, where a question was asked
        _end(LakeError("nobody answered the question; nothing was changed", do_next=_ANSWER), debug=False)
    except Exception as error:
        foreseen = _usage(error) or _disk_full(error)
        if foreseen is None and debug:
            raise
        _end(foreseen or _unexpected(error), debug=False)
    sys.exit(code if isinstance(code, int) else 0)


def _fill_closed_streams() -> None:
    """Give numbers 0 to 2 to nothing, where a caller has closed them: the next file opened would get one, so what
    Spark's JVM prints would land in a data file."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8")  # noqa: SIM115 (as long as the process)


def _usage(error: Exception) -> ConfigError | None:
    """What a user is given for wrong words of a command line; None for another error. Shows the help that a group of
    commands without a word asks for."""
    context, message = getattr(error, "ctx", None), getattr(error, "format_message", None)
    if message is None:  # click's own errors have it, of Typer's copy of click or of click
        return None
    path = getattr(context, "command_path", "binlake")
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message())
        return ConfigError("no command is given", do_next="name one of these commands")
    text, _, near = " ".join(message().split()).rstrip(".?").partition(". Did you mean ")
    if (option := getattr(error, "option_name", None)) is not None:
        likely = difflib.get_close_matches(option, getattr(error, "possibilities", None) or (), n=1, cutoff=0.75)
        text, near = text.partition(" (Possible options: ")[0], "".join(likely)
    do_next = f"`{path} --help` prints what there is"
    commands = getattr(getattr(context, "command", None), "commands", ())
    if near:
        do_next = f"did you mean {near}? {do_next}"
    elif path == "binlake" and option is not None:
        do_next = f"write an option of a command behind its name; {do_next}"
    elif path != "binlake" and commands and option is None:
        do_next = f"name one of {', '.join(commands)}; {do_next}"
    return ConfigError(text, do_next=do_next)


def _disk_full(error: Exception) -> TransientError | None:
    """What a user is given where there is no room for the output or for a file beside it; None for another error."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    place = {} if error.filename is None else {"path": error.filename}
    return TransientError(f"cannot write: {error.strerror}", do_next="free space or raise the quota", **place)


def _end(error: LakeError, *, debug: bool) -> None:
    if debug:
        traceback.print_exception(error)
    # Only an error needs it, and it takes half a second of imports.
    from binlake.cli.text import print_error, terminal

    print_error(error, terminal(stderr=True))
    sys.exit(error.exit_code)


def _unexpected(error: Exception) -> LakeError:
    """What a user is given for an error that nobody foresaw; its traceback is kept in a file."""
    from binlake.stream.spark.cache import log_file

    words = f"{type(error).__name__}: {error}".splitlines()[0]
    try:
        path = log_file("unexpected-error")
        path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError:
        return LakeError(f"unexpected {words}", do_next="run it again with binlake --debug, and report the traceback")
    return LakeError(f"unexpected {words}", do_next="report it with the traceback in this file", log=path)
