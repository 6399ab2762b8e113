"""``binlake`` lines of the pages: the command line's own parser takes them, and the harmless ones run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from click import ClickException
from typer.main import get_command
from typer.testing import CliRunner, Result

from binlake.cli.app import COMMANDS, app
from binlake.cli.typer_extras import LazyCommand
from docs import command_reference
from hudilake.errors import LakeError
from tests.docs.pages import binlake_arguments, blocks, inline_code, pages, shell_commands
from tests.docs.shop import copied
from tests.paths import ROOT

SETTINGS = ("shop.yaml", "/etc/binlake/binlake.yaml")
TABLE, INSTANT = "/data/lake/shop/orders", "20240229120000000"
#: Commands that run here, each with what spares it waiting for a broker.
HARMLESS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("check", "status"), ("--kafka-timeout-s", "0.3")),
    **dict.fromkeys(("query", "explain", "fsck", "repair", "audit", "inspect", "clean", "archive", "compact"), ()),
    **dict.fromkeys(("config-schema", "savepoint", "quarantine", "why"), ()),
}
#: No broker listens, which ``check`` says in its own way.
EXIT_CODES = {"check": 75}
#: What must be among the lines that run.
RUN_SOMEWHERE = {
    *("check", "status", "query", "explain", "fsck", "audit", "inspect", "compact", "clean"),
    *("restore", "savepoint create", "savepoint list", "savepoint delete", "quarantine list", "quarantine replay"),
}


def documented() -> Iterator[tuple[str, list[str]]]:
    """Where it stands, and the arguments, of every ``binlake`` line."""
    for block in blocks("sh"):
        for words in shell_commands(block):
            if (arguments := binlake_arguments(words)) is not None:
                yield str(block), arguments


def parse(arguments: list[str]) -> None:
    """Let the command's own parser read the arguments. Raises its usage errors, KeyError for no such command."""
    command: Any = get_command(app)
    rest = list(arguments)
    while hasattr(command, "commands"):
        command = real(command.commands[rest.pop(0)])
    command.make_context(command.name, rest)


def real(command: Any) -> Any:  # noqa: ANN401 - click's command, of two origins
    """The command itself: in the list of all, commands are imported when they are called."""
    return command.real() if isinstance(command, LazyCommand) else command


def options_of(words: list[str]) -> tuple[set[str], list[str]]:
    """The options of the command that the words begin with, and the words after its name."""
    command: Any = get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        command, words = real(command.commands[words[0]]), words[1:]
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}, words


def test_every_line_parses() -> None:
    lines = list(documented())
    assert len(lines) > 100
    assert [(place, error) for place, arguments in lines if (error := refused(arguments))] == []


def refused(arguments: list[str]) -> str:
    """What the command's parser says against the arguments."""
    try:
        parse(arguments)
    except (ClickException, KeyError) as error:
        return repr(error)
    return ""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("query t 'select 1 from t' --no-such-option", "No such option"),
        ("compact", "Missing"),
        ("query t 'select 1 from t' --format xml", "xml"),
        ("inspect t --slices few", "integer"),
        ("no-such-command", "no-such-command"),
    ],
)
def test_control_a_wrong_line_does_not_parse(line: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        parse(shlex.split(line))


def test_commands_and_options_in_the_text_exist() -> None:
    assert [(page.name, code) for page in pages() for code in inline_code(page) if wrong(code)] == []


def wrong(code: str) -> bool:
    """Whether it is a ``binlake`` command that does not exist, or has an option that does not."""
    words = code.split()
    if words[0] == "binlake":
        try:
            options, rest = options_of(words[1:])
        except KeyError:
            return True
        return not {word for word in rest if word.startswith("--")} <= options
    return words[0].startswith("--") and words[0] not in all_options()


@lru_cache(maxsize=1)
def all_options() -> set[str]:
    found, open_commands = set[str](), [get_command(app)]
    while open_commands:
        command: Any = open_commands.pop()
        open_commands += map(real, getattr(command, "commands", {}).values())
        found |= {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return found


def test_control_wrong_commands_in_the_text_are_found() -> None:
    codes = ["binlake compakt", "binlake run --twice", "--even-newer", "binlake run --once", "--once", "make test"]
    assert [wrong(code) for code in codes] == [True, True, True, False, False, False]


def harmless(arguments: list[str]) -> bool:
    """Whether the line needs neither Kafka nor Spark, no answer, and nothing that the lake of these tests lacks."""
    rehearsed = arguments[0] == "restore" and "--dry-run" in arguments
    return rehearsed or (arguments[0] in HARMLESS and not {"--spark", "--take-back", "--at"} & {*arguments})


def harmless_pages() -> list[Path]:
    """The pages that show a line which runs here."""
    shown = {where.rpartition(":")[0] for where, arguments in documented() if harmless(arguments)}
    return [page for page in pages() if str(page.relative_to(ROOT)) in shown]


@pytest.mark.parametrize("page", harmless_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_harmless_lines_run_one_after_the_other(page: Path, shop: Path, tmp_path: Path) -> None:
    place = str(page.relative_to(ROOT))
    lines = [arguments for where, arguments in documented() if where.startswith(f"{place}:") and harmless(arguments)]
    conf = copied(shop, tmp_path)
    for arguments in lines:
        done = run(here(arguments, conf))
        assert done.exit_code == EXIT_CODES.get(arguments[0], 0), (arguments, done.output, done.exception)


def test_the_pages_show_every_harmless_command() -> None:
    shown = [arguments for _, arguments in documented() if harmless(arguments)]
    assert {arguments[0] for arguments in shown} | {" ".join(arguments[:2]) for arguments in shown} >= RUN_SOMEWHERE


def test_control_a_line_about_something_else_fails(shop: Path) -> None:
    conf = shop / "conf.yaml"
    for line in ("query shop.orders 'select nothing_such from t' --conf shop.yaml", "audit shop.yaml shop.carts"):
        assert run(here(shlex.split(line), conf)).exit_code != 0


def test_nothing_but_the_broker_is_missing(shop: Path, tmp_path: Path) -> None:
    """What ``check`` ends with in the lines above."""
    done = run(here(["check", "shop.yaml"], copied(shop, tmp_path)))
    failed = [line for line in done.stdout.splitlines() if "failed" in line]
    assert len(failed) == 1
    assert "cannot reach Kafka" in failed[0]


def test_the_reference_is_what_the_command_line_says() -> None:
    assert command_reference.PAGE.read_text(encoding="utf-8") == command_reference.page(), "run make docs"


def test_the_reference_has_every_command_and_option() -> None:
    text = command_reference.PAGE.read_text(encoding="utf-8")
    own = {"--help", "--install-completion", "--show-completion"}
    assert {option for option in all_options() - own if option.startswith("-") and f"`{option}`" not in text} == set()
    assert [entry.name for entry in COMMANDS if f"## binlake {entry.name}\n" not in text] == []


def test_the_schema_is_printed() -> None:
    assert json.loads(run(["config-schema"]).stdout)["title"] == "Settings"


def here(arguments: list[str], conf: Path) -> list[str]:
    """The arguments with the lake and the settings of this test."""
    lake = conf.parent / "lake"
    places = {TABLE: str(lake / "shop/orders"), **dict.fromkeys(SETTINGS, str(conf))}
    words = [places.get(word, word) for word in arguments]
    if INSTANT in words:
        (held,) = [file.name.split(".")[0] for file in (lake / "shop/orders/.hoodie").rglob("*.savepoint")]
        words = [held.split("_")[0] if word == INSTANT else word for word in words]
    return [*words, *HARMLESS.get(arguments[0], ())]


def run(arguments: list[str]) -> Result:
    done = CliRunner().invoke(app, arguments)
    if isinstance(done.exception, LakeError):
        done.exit_code = done.exception.exit_code
    return done
