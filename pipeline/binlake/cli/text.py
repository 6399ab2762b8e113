"""Text for people: numbers as they read them, where it is printed, how an error reads, and which columns fit."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from hudilake.errors import ConfigError, LakeError, reversed_window

#: Width of what is printed into a file or a pipe, so that no table is folded.
FILE_WIDTH = 180
#: From this width on, tables show all their columns.
WIDE = 132
R = TypeVar("R")
#: Longer cells are wrapped: a column that may wrap asks for so many characters at most.
_WRAPPED = 16
#: Characters between two columns, and those of a table beside its columns.
_BETWEEN, _EDGES = 3, 1
_UNITS_MS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))


def duration(millis: float | None) -> str:
    """``640 ms``, ``1.2 s``, ``3.4 min``, ``2.0 h``, ``5.1 d``; ``-`` for None."""
    if millis is None:
        return "-"
    for unit_ms, name in _UNITS_MS:
        if abs(millis) >= unit_ms:
            return f"{millis / unit_ms:.1f} {name}"
    return f"{millis / 1000:.1f} s" if abs(millis) >= 1000 else f"{millis:.0f} ms"


def size(count: int) -> str:
    """``512 B``, ``1.5 KB``, ``2.0 MB``, ``3.1 GB`` (powers of 1000)."""
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def lag_words(lag: int, *, in_bytes: bool) -> str:
    """``lag 12,345`` of records, ``lag 1.5 KB`` of a binlog's bytes."""
    return f"lag {lag_amount(lag, in_bytes=in_bytes)}"


def lag_amount(lag: int, *, in_bytes: bool) -> str:
    """``12,345`` of records, ``1.5 KB`` of a binlog's bytes."""
    return size(lag) if in_bytes else number(lag)


def number(count: int) -> str:
    """``12,345``."""
    return f"{count:,}"


def moment(epoch_ms: int | None) -> str:
    """``2026-11-21 05:30:00+00:00``; ``-`` for None."""
    return "-" if epoch_ms is None else datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(" ", "seconds")


#: Characters that steer a terminal or reorder its text; line breaks are the layout's own.
_STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with escapes (``\\x1b``) in place of characters that steer a terminal. Line breaks stay."""
    return _STEERING.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Printable text with escapes in place of line breaks: what comes from a topic can forge no line."""
    return printable(text).replace("\n", "\\n")


class Terminal(Console):
    """A console that prints text as it is: names from topics are no markup, and steer no terminal."""

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        # Rich takes the colours out by itself and leaves bold letters in.
        colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
        super().__init__(stderr=stderr, width=width, color_system=colours, markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of anything printed, made printable; rich's own control codes stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def epoch_ms(text: str | None) -> int | None:
    """A time as a user writes it (UTC unless it names a zone), in ms since the epoch; None for None. Raises
    ConfigError."""
    if text is None:
        return None
    try:
        given = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError("this is not a time", do_next="write 2026-11-21 or 2026-11-21T05:30", time=text) from error
    return int((given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp() * 1000)


def epoch_window(since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """Two times as ``epoch_ms`` gives them. Raises ConfigError too if nothing is between them."""
    begin, end = epoch_ms(since), epoch_ms(until)
    if begin is not None and end is not None and end <= begin:
        raise reversed_window(since, until)
    return begin, end


def terminal(*, stderr: bool = False) -> Console:
    """Standard output (or error): as wide as the terminal, or wide enough for any table when it is none."""
    console = Terminal(stderr=stderr)
    return console if console.is_terminal else Terminal(stderr=stderr, width=FILE_WIDTH)


def say(line: str) -> None:
    """Print a line as it is."""
    terminal().print(line, markup=False, highlight=False, soft_wrap=True)


def say_json(fields: Mapping[str, Any], default: Callable[[Any], Any] | None = None) -> None:
    """Print an object as a JSON line, at once: what a command prints with ``--json``. ``default``: of values that JSON
    does not have."""
    sys.stdout.write(json_line(fields, default))
    sys.stdout.flush()


def json_line(fields: Mapping[str, Any] | Sequence[Any], default: Callable[[Any], Any] | None = None) -> str:
    """An object or a list as a line. JSON has no NaN and no infinite numbers: they are texts, as Spark writes them."""
    try:
        return json.dumps(fields, ensure_ascii=False, default=default, allow_nan=False) + "\n"
    except ValueError:
        return json.dumps(_finite(fields), ensure_ascii=False, default=default) + "\n"


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def print_error(error: LakeError, console: Console) -> None:
    """One line: what happened, where, and what to do next. The mistakes of a settings file have a line each."""
    what = error.what if hasattr(error, "problems") else one_line(error.what)
    place = ", ".join(f"{name}={one_line(str(value))}" for name, value in error.where.items())
    console.print("error: ", style="bold red", end="")
    parts = [f"{what} [{place}]" if place else what, f"Next: {one_line(error.do_next)}" if error.do_next else ""]
    console.print(". ".join(filter(None, parts)), markup=False, highlight=False, soft_wrap=True)


class CellColumn(NamedTuple, Generic[R]):
    """A column.

    Args:
        heading: of the column.
        cell: a row -> its text.
        narrow: whether a terminal of less than ``WIDE`` columns shows it too.
        wraps: whether it is a text, which is on the left and may take several lines.
    """

    heading: str
    cell: Callable[[R], str]
    narrow: bool = False
    wraps: bool = False

    def width(self, rows: Sequence[R]) -> int:
        """The characters that it needs."""
        longest = max((len(self.cell(row)) for row in rows), default=0)
        return max(len(self.heading), min(longest, _WRAPPED) if self.wraps else longest)


def fitting(
    columns: Sequence[CellColumn[R]], names: Sequence[str], rows: Sequence[R], width: int
) -> list[CellColumn[R]]:
    """The columns that fit beside whole names, in order; the last ones go first. ``width``: of the terminal."""
    shown = [column for column in columns if column.narrow or width >= WIDE]
    free = width - max(map(len, names), default=0) - len("|  |")
    needed = [column.width(rows) + len("  |") for column in shown]
    while shown and sum(needed[: len(shown)]) > free:
        shown.pop()
    return shown


def fill(
    table: Table, columns: Sequence[CellColumn[R]], named: Sequence[tuple[str, R, str | None]], width: int
) -> None:
    """Add the column of names and these columns to a table, and its rows. A name that is longer than a line takes
    several.

    Args:
        table: without columns.
        columns: as ``fitting`` returns them.
        named: of each row the name, the row, and the style or None.
        width: of the terminal.
    """
    longest = max((len(name) for name, _, _ in named), default=0)
    table.add_column("table", overflow="fold", min_width=min(longest, width - len("|  |")))
    for column in columns:
        justify: Literal["left", "right"] = "left" if column.wraps else "right"
        table.add_column(column.heading, justify=justify, no_wrap=not column.wraps, overflow="fold")
    for name, row, style in named:
        cells = (name, *(column.cell(row) for column in columns))
        table.add_row(*(Text(one_line(cell)) for cell in cells), style=style)


def print_rows(names: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    """Print rows under their columns' names. A terminal of 80 columns shows some eight side by side; where the names do
    not fit, nothing is cut: each value is a line behind its name. A file or a pipe has no width, so there a table fits.

    Args:
        names: of the columns.
        rows: of texts, each as long as ``names``.
        console: where to print; of a file or a pipe its width does not count.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    heads = [printable(name) for name in names]
    whole = [max([cell_len(head), *(_longest_line(row[place]) for row in cells)]) for place, head in enumerate(heads)]
    least = [max(cell_len(head), min(wide, _WRAPPED)) for head, wide in zip(heads, whole, strict=True)]
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
