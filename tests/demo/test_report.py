"""The demo's last screen in a terminal, a pipe and a file."""

from __future__ import annotations

import pytest
from rich.console import Console

from demo.report import print_verdicts
from demo.verdict import TableVerdict, judge
from tests.demo.lake_from_truth import lake_table
from tests.demo.test_verdict import named, replaced
from tests.sinks import colours, in_file, in_pipe, in_terminal, plain

#: Two verdicts by the code that the demo ends with. The names are such that rich would take for markup.
SCREEN = """
from binlake.cli.text import terminal
from demo.report import print_verdicts
from demo.verdict import Difference, TableVerdict
changed = Difference()
changed.add((7,), "[/]", "[red]x[/red]")
verdicts = [
    TableVerdict("shop.[green]x[/]", 3, 3, 12),
    TableVerdict("shop.[/bold]", 3, 3, 11, differences={"[link=http://x]": changed}, gone_columns=["[dim]"]),
]
print_verdicts(verdicts, terminal())
"""
GREEN, RED = "32", "31"


@pytest.fixture(scope="module")
def screens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The screen by where it is written."""
    arguments = ["-c", SCREEN]
    return {
        "terminal": in_terminal(arguments),
        "terminal without colours": in_terminal(arguments, NO_COLOR="1"),
        "pipe": in_pipe(arguments),
        "file": in_file(tmp_path_factory.mktemp("demo") / "screen", arguments),
    }


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│┃").split("│")]


@pytest.mark.parametrize("sink", ["terminal", "terminal without colours", "pipe", "file"])
def test_words_and_names_are_printed_as_they_are(screens: dict[str, str], sink: str) -> None:
    lines = plain(screens[sink]).splitlines()
    assert [cells(line) for line in lines if line.startswith("│")] == [
        ["shop.[green]x[/]", "3", "3", "12", "0", "equal"],
        ["shop.[/bold]", "3", "3", "11", "1", "DIFFERENT"],
    ]
    assert lines[-3:] == [
        "shop.[/bold].[link=http://x]: 1 cells differ, such as (7,): source '[/]', lake '[red]x[/red]'",
        "shop.[/bold]: columns that the source has dropped or renamed: [dim]",
        "1 of 2 tables equal",
    ]


def test_only_a_terminal_gets_colours(screens: dict[str, str]) -> None:
    assert colours(screens["terminal"]) == {GREEN, RED}
    assert colours(screens["terminal without colours"]) == set()
    assert [sink for sink in ("pipe", "file") if "\x1b" in screens[sink]] == []


def test_the_report_names_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    truth = named("shop.stock")
    lake = lake_table(truth)
    verdicts = [
        judge(truth, lake),
        judge(truth, replaced(lake, "qty", 0, -7).slice(0, 61)),
        TableVerdict("shop.none", 3, mistakes=["no table at /x"]),
    ]
    print_verdicts(verdicts, Console(width=160))
    shown = capsys.readouterr().out
    assert "1 of 3 tables equal" in shown
    assert "shop.stock.qty: 1 cells differ, such as ('SKU-000',): source 40, lake -7" in shown
    assert "shop.stock: 1 rows missing, 0 too many, 0 twice" in shown
    assert "shop.none: no table at /x" in shown
