"""How an error is printed."""

from __future__ import annotations

from rich.console import Console

from binlake.cli.text import one_line
from hudilake.errors import BinlakeError


def print_error(error: BinlakeError, console: Console) -> None:
    """What happened, where, and what to do next, a line each."""
    console.print("error: ", style="bold red", end="")
    console.print(error.what, markup=False, highlight=False, soft_wrap=True)
    for name, value in error.where.items():
        console.print(f"  {name}: {one_line(str(value))}", markup=False, highlight=False, soft_wrap=True)
    if error.do_next:
        console.print(f"next: {error.do_next}", markup=False, highlight=False, soft_wrap=True)
