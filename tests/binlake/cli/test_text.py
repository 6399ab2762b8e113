import io

import pytest
from rich.console import Console
from rich.table import Table

from binlake.cli.text import CellColumn, duration, fill, fitting, number, print_rows, size


@pytest.mark.parametrize(
    ("millis", "text"),
    [
        (None, "-"),
        (0, "0 ms"),
        (999.4, "999 ms"),
        (1000, "1.0 s"),
        (59_940, "59.9 s"),
        (90_000, "1.5 min"),
        (7_200_000, "2.0 h"),
        (432_000_000, "5.0 d"),
        (-1500, "-1.5 s"),
    ],
)
def test_durations(millis: float | None, text: str) -> None:
    assert duration(millis) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (2_000_000, "2.0 MB"), (3 * 10**13, "30.0 TB")]
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text


def test_numbers() -> None:
    assert number(1234567) == "1,234,567"


def printed(names: list[str], rows: list[list[str]], *, terminal: bool) -> str:
    """What ``binlake query`` prints at a terminal of 80 columns, or into a pipe."""
    console = Console(file=io.StringIO(), force_terminal=terminal, width=80, color_system=None)
    print_rows(names, rows, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


COLUMNS = [f"customer_column_{number}" for number in range(24)]


def test_rows_that_fit_a_terminal_are_a_table() -> None:
    shown = printed(["id", "customer_name"], [["1", "long " * 40 + "x" * 90], ["2", ""]], terminal=True)
    assert "customer_name" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "".join(shown.split()).replace("│", "").count("x") == 90


def test_names_of_24_columns_are_whole_at_80_columns() -> None:
    """A table would cut them: each value gets a line."""
    rows = [[f"value {number} {'y' * 70}" for number in range(24)], ["[bold]\x1b"] * 24]
    lines = printed(COLUMNS, rows, terminal=True).splitlines()
    assert [line.split()[0] for line in lines] == ["row", *COLUMNS, "row", *COLUMNS]
    assert lines[24] == f"  customer_column_23  value 23 {'y' * 70}"
    assert lines[-1] == "  customer_column_23  [bold]\\x1b"


def test_a_pipe_is_as_wide_as_the_names_ask_for(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(COLUMNS, [[str(number) for number in range(24)]], Console(file=io.StringIO(), width=80))
    head = capsys.readouterr().out.splitlines()[1]
    assert [name.strip() for name in head.split("┃")[1:-1]] == COLUMNS


@pytest.mark.parametrize("name", ["shop.orders", "d" * 64 + "." + "t" * 64, "with blanks." + "in it " * 8 + "x"])
def test_a_name_of_a_table_is_whole_at_80_columns(name: str) -> None:
    columns = [CellColumn[str](f"heading {number}", lambda row: row, narrow=True) for number in range(9)]
    grid, console = Table(), Console(file=io.StringIO(), width=80, color_system=None)
    shown = fitting(columns, [name], ["123,456"], console.width)
    fill(grid, shown, [(name, "123,456", None)], console.width)
    console.print(grid)
    assert isinstance(console.file, io.StringIO)
    lines = [line.split("│")[1] for line in console.file.getvalue().splitlines() if line.startswith("│")]
    assert "".join("".join(lines).split()) == "".join(name.split())
    assert len(lines) == (1 if len(name) < 76 else 2)
