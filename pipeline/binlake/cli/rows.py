"""Rows for people: as a table with whole names where it fits, else a line for every value.

A terminal of 80 columns shows some eight columns side by side. What does not fit is not cut: the rows are printed one
under another, each value behind its name. A file or a pipe has no width, so there a table always fits.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from binlake.cli.text import FILE_WIDTH, Terminal, printable

#: Longer cells may be folded: a column asks for so many characters at most, or for those of its name.
_FOLDED = 16
#: Characters between two columns, and those of a table beside its columns.
_BETWEEN, _EDGES = 3, 1


def print_rows(names: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    """Print rows under their columns' names.

    Args:
        names: of the columns.
        rows: of texts, each as long as ``names``.
        console: where to print; of a file or a pipe its width does not count.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    heads = [printable(name) for name in names]
    whole = [max([cell_len(head), *(_longest_line(row[place]) for row in cells)]) for place, head in enumerate(heads)]
    least = [max(cell_len(head), min(wide, _FOLDED)) for head, wide in zip(heads, whole, strict=True)]
    needed = sum(least) + _BETWEEN * len(least) + _EDGES
    if not console.is_terminal:
        console = Terminal(width=max(FILE_WIDTH, needed))
    elif needed > console.width:
        _print_records(heads, cells, console)
        return
    grid = Table()
    for head, wide in zip(heads, _widths(least, whole, console.width - needed), strict=True):
        grid.add_column(Text(head), width=wide, overflow="fold")
    for row in cells:
        grid.add_row(*map(Text, row))
    console.print(grid)


def _widths(least: Sequence[int], whole: Sequence[int], free: int) -> list[int]:
    """The width of each column: those that ask for the least more get it first. ``free``: characters to give away."""
    widths = list(least)
    for place in sorted(range(len(widths)), key=lambda one: whole[one] - least[one]):
        more = min(whole[place] - least[place], free)
        widths[place] += more
        free -= more
    return widths


def _print_records(heads: Sequence[str], cells: Sequence[Sequence[str]], console: Console) -> None:
    """Print a line for every value, behind its name."""
    indent = max(map(cell_len, heads))
    for number, row in enumerate(cells, 1):
        console.print(Text(f"row {number}"), style="bold")
        for head, cell in zip(heads, row, strict=True):
            padded = head + " " * (indent - cell_len(head))
            console.print(Text(f"  {padded}  {cell}"), soft_wrap=True)


def _longest_line(text: str) -> int:
    """The width of a cell that is not folded."""
    return max(map(cell_len, text.split("\n")))
