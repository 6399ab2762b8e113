"""``python -m demo``: the exit code is 0 only if every table equals the source."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from binlake.cli.commands.reads.console import served, watched
from binlake.cli.display import Display, LiveDisplay
from binlake.cli.logs import console_log
from binlake.cli.text import duration, print_error, terminal
from binlake.cli.until_stopped import until_stopped
from binlake.settings import Settings
from demo.report import print_verdicts
from demo.scenario import Scenario
from demo.ticker import Ticker
from hudilake.clock import monotonic_s
from hudilake.errors import LakeError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def demo(
    keep: Annotated[Path | None, typer.Option(help="Keep everything the demo makes in this directory.")] = None,
    seconds: Annotated[float, typer.Option(help="How long changes are produced.", min=1)] = 25,
    rate: Annotated[float, typer.Option(help="Changes a second of the live database.", min=1)] = 300,
    seed: Annotated[int, typer.Option(help="Seed of the live database.")] = 7,
    live: Annotated[bool, typer.Option("--display/--no-display", help="Live table, or a line a second.")] = False,
    stay: Annotated[bool, typer.Option("--stay", help="Keep the stream and its console up, until Ctrl-C.")] = False,
) -> None:
    """Play recorded and live change events through Kafka into Hudi tables, and judge the tables cell by cell."""
    console, started = terminal(), monotonic_s()
    shown = ShownLake(partial(_say, console))
    directory = keep or Path(tempfile.mkdtemp(prefix="binlake-demo-"))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        scenario = Scenario(directory, seconds, rate, seed, partial(_say, console), shown.show)
        with console_log(), scenario.up() as running:
            with _display(live, console) as display:
                running.play(display.update)
            verdicts = running.verdicts()
            print_verdicts(verdicts, console)
            console.print(f"took {duration((monotonic_s() - started) * 1000)}", highlight=False)
            if stay:
                shown.stay(running.go_on)
        if not stay:
            shown.end()
    finally:
        shown.close()
        if keep is None:
            shutil.rmtree(directory, ignore_errors=True)
    if not all(v.equal for v in verdicts):
        raise typer.Exit(1)


class ShownLake:
    """The lake in a browser, while the demo runs and as long as it stays. ``say``: prints a line."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._stack, self._address = say, ExitStack(), ""

    def show(self, conf: Path, environment: Mapping[str, str]) -> None:
        """Serve the console of a stream whose settings take values of an environment."""
        os.environ.update(environment)  # queries of the console are processes of their own
        site = self._stack.enter_context(watched({str(conf): Settings.load(conf)}))
        self._address = self._stack.enter_context(served(site, "127.0.0.1", 0))
        self._say(f"the console is at {self._address}")

    def stay(self, work: Callable[[threading.Event], None]) -> None:
        """Say where the lake can be seen, and work until Ctrl-C or SIGTERM, which set the event."""
        self._say(f"the stream goes on, and the console is at {self._address}; Ctrl-C ends both")
        until_stopped(work)

    def end(self) -> None:
        """Say where the lake could be seen."""
        self._say(f"the console was at {self._address}; make demo KEEP=1 keeps it and the stream up")

    def close(self) -> None:
        """Stop serving."""
        self._stack.close()


def _display(live: bool, console: Console) -> Display:
    return LiveDisplay("demo", console) if live and console.is_terminal else Ticker(partial(_say, console))


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.file.flush()


def main() -> None:
    """Run the demo; errors are printed as ``binlake`` prints them."""
    try:
        app()
    except LakeError as error:
        print_error(error, terminal(stderr=True))
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
