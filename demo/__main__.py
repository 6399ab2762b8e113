"""``python -m demo``: the exit code is 0 only if every table equals the source."""

from __future__ import annotations

import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from binlake.cli.display import Display, LiveDisplay
from binlake.cli.logs import console_log
from binlake.cli.text import duration, print_error, terminal
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
) -> None:
    """Play recorded and live change events through Kafka into Hudi tables, and judge the tables cell by cell."""
    console, started = terminal(), monotonic_s()
    directory = keep or Path(tempfile.mkdtemp(prefix="binlake-demo-"))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with console_log(), _display(live, console) as display:
            verdicts = Scenario(directory, seconds, rate, seed, partial(_say, console), display.update).run()
        print_verdicts(verdicts, console)
        console.print(f"took {duration((monotonic_s() - started) * 1000)}", highlight=False)
    finally:
        if keep is None:
            shutil.rmtree(directory, ignore_errors=True)
    if not all(v.equal for v in verdicts):
        raise typer.Exit(1)


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
