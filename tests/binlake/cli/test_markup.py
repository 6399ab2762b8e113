"""What commands print is text as it is: no name is taken for markup, and only a terminal gets colours.

One rule of the code holds it for every command: consoles are made in ``binlake.cli.text`` alone, their markup is off,
and colours come from ``Text`` and ``style=``. The commands themselves are run on tables whose names look like markup.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich import markup
from rich.errors import MarkupError

from binlake.cli.app import COMMANDS
from tests.paths import ROOT
from tests.selection import first
from tests.sinks import colours, in_file, in_pipe, in_terminal, plain
from tests.whole.security.hostile import HostileTopic

PRINTING = ("pipeline", "demo", "bench", "embedded", "examples", "jobs", "tests/programs")
HOME = "pipeline/binlake/cli/text.py"
#: What makes a console, or takes text for markup.
FORBIDDEN = {"Console", "from_markup", "print_json", "rich.print", "rich.get_console", "get_console"}

NAME, COLUMN = "[green]x", "[red]y"
TABLE = f"shop.{NAME}"
#: Each command's arguments, and a text that it shows. ``CONF``: the stream's settings; ``SQL``: a file of queries.
RUNS: dict[str, list[tuple[list[str], str]]] = {
    "init": [(["CONF"], "the file is there already")],
    "tables": [(["CONF"], TABLE)],
    "status": [(["CONF", "--no-kafka"], TABLE)],
    "audit": [(["CONF"], TABLE)],
    "inspect": [([TABLE, "--conf", "CONF"], "bucket"), (["[blue]none"], "[blue]none")],
    "query": [
        ([TABLE, f'select v, 1 as "{COLUMN}" from t', "--conf", "CONF"], COLUMN),
        ([TABLE, "select v from t where id = '[bold]'", "--conf", "CONF"], "[bold]"),
    ],
    "explain": [([TABLE, "select v from t where v = '[/]'", "--conf", "CONF"], "[/]")],
    "changes": [([TABLE, "--conf", "CONF", "--since", "earliest"], NAME)],
    "cuts": [(["CONF"], "no cut")],
    "layout": [([TABLE, "--conf", "CONF", "--queries", "SQL"], "[cyan]")],
    "fsck": [([TABLE, "--conf", "CONF"], "0 error"), (["[dim]none", "--conf", "CONF"], "[dim]none")],
    "repair": [([TABLE, "--conf", "CONF"], "nothing that can be repaired")],
    "why": [(["CONF", TABLE, "1"], f"v={NAME}")],
    "lineage": [(["CONF", TABLE], TABLE)],
    "table": [(["pause", "CONF", TABLE], TABLE), (["resume", "CONF", TABLE], TABLE)],
    "compact": [(["CONF"], TABLE)],
    "cluster": [(["CONF"], TABLE)],
    "clean": [(["CONF"], TABLE)],
    "archive": [(["CONF"], TABLE)],
    "savepoint": [
        (["create", "CONF", TABLE, "--comment", "[bold]before[/]"], TABLE),
        (["list", "CONF", TABLE], "[bold]before[/]"),
    ],
    "restore": [(["CONF", TABLE, "[bold]before[/]", "--dry-run"], TABLE)],
    "tag": [(["list", "CONF"], "0 tags"), (["delete", "CONF", "[bold]t"], "[bold]t")],
    "erase": [(["CONF", TABLE, "1", "--dry-run"], TABLE), (["CONF", TABLE, "[bold]=1", "--dry-run"], "[bold]")],
    "rebucket": [(["CONF", TABLE, "--buckets", "2", "--dry-run"], TABLE)],
    "quarantine": [(["list", "CONF", "--records"], "malformed_json"), (["show", "CONF"], "[magenta]")],
    "cells": [(["CONF", "shop.[blue]none"], "[blue]none")],
    "backfill": [(["CONF", "shop.[blue]none", "--from", "[x]", "--columns", "v"], "[x]")],
    "check": [(["CONF", "--kafka-timeout-s", "0.1"], "cannot reach Kafka"), (["[/bold]"], "[/bold]")],
    "config-schema": [([], "Settings")],
    **{
        name: [(["[/bold].yaml"], "[/bold].yaml")]
        for name in ("run", "load", "verify", "replay", "dump", "derive", "revert", "console", "top")
    },
    "metastore": [(["check", "[/bold].yaml"], "[/bold].yaml")],
}
#: Runs command lines one after the other in a process; what each prints begins with a line of its own.
PROGRAM = """
import json, sys
from binlake.cli.app import main
for arguments in json.loads(sys.argv[1]):
    print("=====", flush=True)
    sys.argv = ["binlake", *arguments]
    try:
        main()
    except SystemExit:
        pass
"""
Screen = Callable[[list[str], Path], str]
#: Where a program prints -> what it prints there, in a directory.
SINKS: dict[str, Screen] = {
    "terminal": lambda program, _: in_terminal(program),
    "pipe": lambda program, _: in_pipe(program),
    "terminal without colours": lambda program, _: in_terminal(program, NO_COLOR="1"),
    "file": lambda program, place: in_file(place / "output", program),
}


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[str]]:
    """What each of the command lines prints at a sink."""
    place = tmp_path_factory.mktemp("markup")
    made = HostileTopic(place / "stream")
    for key in range(3):
        made.put("shop", NAME, {"id": key, "v": NAME})
        made.batch()
    made.log.add("t", b"{broken [magenta]", None)
    made.batch()
    queries = place / "queries.sql"
    queries.write_text("select v from t where v = '[cyan]';\n")
    named = {"CONF": str(made.conf), "SQL": str(queries)}
    lines = [[name, *(named.get(a, a) for a in arguments)] for name, runs in RUNS.items() for arguments, _ in runs]
    program = ["-c", PROGRAM, json.dumps(lines)]
    return lambda sink: SINKS[sink](program, place).split("=====\n")[1:]


def shown() -> list[tuple[str, str]]:
    return [(name, word) for name, runs in RUNS.items() for _, word in runs]


def test_every_command_is_run() -> None:
    assert set(RUNS) == {entry.name for entry in COMMANDS}


@pytest.mark.full
@pytest.mark.parametrize("sink", first(2, SINKS))
def test_commands_print_names_as_they_are_and_only_a_terminal_gets_colours(
    printed: Callable[[str], list[str]], sink: str
) -> None:
    texts = printed(sink)
    assert len(texts) == len(shown())
    missing = [
        (name, word, text)
        for (name, word), text in zip(shown(), texts, strict=True)
        if word not in plain(text).replace("\n", " ")
    ]
    assert missing == []
    if sink == "terminal":
        assert colours("".join(texts)) >= {"31", "32"}  # check says "failed" and "ok"
    else:
        assert colours("".join(texts)) == set()
    assert ("\x1b" in "".join(texts)) == (sink in ("terminal", "terminal without colours"))


# -- the rule of the code ---------------------------------------------------------------------------------------------


def modules() -> Iterator[Path]:
    """The modules of ours that import rich."""
    for folder in PRINTING:
        for module in sorted((ROOT / folder).rglob("*.py")):
            if "rich" in module.read_text():
                yield module


def consoles_of(code: str) -> list[str]:
    """The calls that make a console or read markup."""
    calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return [call for call in calls if call in FORBIDDEN or call.rpartition(".")[2] in FORBIDDEN]


def marked_up(code: str) -> list[str]:
    """The texts that rich would take for markup."""
    texts = [n.value for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return [text for text in texts if _is_markup(text)]


def _is_markup(text: str) -> bool:
    try:
        return bool(markup.render(text, emoji=False).spans)
    except MarkupError:
        return True


def test_consoles_are_made_in_one_module() -> None:
    made = {str(module.relative_to(ROOT)): consoles_of(module.read_text()) for module in modules()}
    assert {name for name, calls in made.items() if calls} == set()
    assert HOME in made  # its class is a console; nothing else makes one
    assert consoles_of("Console(width=3)\nrich.console.Console()\nText.from_markup('[b]x')") != []  # the control


def test_no_text_of_ours_is_markup() -> None:
    """Markup is off, so that it would be printed as it stands."""
    found = {str(module.relative_to(ROOT)): marked_up(module.read_text()) for module in modules()}
    assert {name: texts for name, texts in found.items() if texts} == {}
    assert marked_up('grid.add_row("[green]equal[/]")') == ["[green]equal[/]"]  # the control
