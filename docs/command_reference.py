"""Writes ``docs/commands.md`` from the command line itself: usage, arguments, options and exit codes.

``python -m docs.command_reference`` writes it; a test compares the page with what it would write.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from typer.main import get_command

from binlake.cli.app import app
from binlake.cli.exit_codes import EXIT_CODES
from binlake.cli.typer_extras import LazyCommand

_WIDTH = 120
_ROOT = Path(__file__).parent.parent
PAGE = _ROOT / "docs" / "commands.md"
_RUNBOOKS = _ROOT / "docs" / "runbooks"
_INTRODUCTION = """# Commands

Every command of `binlake`, as its help says. This page is generated from the command line by `make docs`.

`CONF` is the settings file of a stream ([Configuration](configuration.md)). Results go to standard output, messages and
errors to standard error. An error is one line: what happened, where, and what to do next; `binlake --debug` adds stack
traces. `binlake --install-completion` lets the shell complete commands.

## Exit codes

All commands end with one of these. A command over several tables goes on after a failing table and ends with the code
of the first error. [Runbooks](runbooks/index.md) say what to do, and which codes a supervisor may restart on.

| code | meaning | runbook |
| --- | --- | --- |
"""
#: What Typer offers with every program.
_OF_TYPER = ("install_completion", "show_completion", "help")


def page() -> str:
    """The text of the page."""
    root: Any = get_command(app)
    codes = "".join(f"| {code} | {meaning} | {_runbooks_of(code)} |\n" for code, meaning in EXIT_CODES.items())
    parts = ["## Options before the command\n", _parameters(root)]
    for name, command in sorted(root.commands.items()):
        parts += _of_command(f"binlake {name}", command, "##")
    return _INTRODUCTION + codes + "\n" + "\n".join(parts)


def _runbooks_of(code: int) -> str:
    """Links to the runbooks whose title names an exit code."""
    titles = {path: path.read_text(encoding="utf-8").partition("\n")[0] for path in sorted(_RUNBOOKS.glob("*.md"))}
    links = (
        f"[{title.removeprefix('# ').partition(':')[0]}](runbooks/{path.name})"
        for path, title in titles.items()
        if re.search(rf"\b{code}\b", title)
    )
    return ", ".join(links)


def _of_command(name: str, command: Any, heading: str) -> Iterator[str]:  # noqa: ANN401 - click's, of two origins
    command = command.real() if isinstance(command, LazyCommand) else command
    below = getattr(command, "commands", {})
    yield f"{heading} {name}\n"
    if not below:
        context = command.make_context(name, [], resilient_parsing=True)
        pieces = " ".join(command.collect_usage_pieces(context)).replace("{", "").replace("}", "")
        yield f"```text\n{name} {pieces}\n```\n"
    yield f"{_flowing(command.help)}\n"
    if table := _parameters(command):
        yield table
    for inner, subcommand in sorted(below.items()):
        yield from _of_command(f"{name} {inner}", subcommand, heading + "#")


def _flowing(text: str | None) -> str:
    return "\n\n".join(textwrap.fill(" ".join(part.split()), _WIDTH) for part in (text or "").split("\n\n"))


def _parameters(command: Any) -> str:  # noqa: ANN401 - click's, of two origins
    """The table of a command's arguments and options; "" if it has none."""
    rows = [row for parameter in command.params if (row := _row(parameter)) is not None]
    return "| argument, option | default | |\n| --- | --- | --- |\n" + "".join(rows) if rows else ""


def _row(parameter: Any) -> str | None:  # noqa: ANN401 - click's, of two origins
    if parameter.name in _OF_TYPER:
        return None
    text = _escaped(" ".join((parameter.help or "").split()))
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    if isinstance(kind, type) and issubclass(kind, Enum):
        text += f" One of {', '.join(f'`{one.value}`' for one in kind)}."
    if parameter.param_type_name == "argument":
        need = "required" if parameter.required else ""
        return f"| `{_escaped(parameter.metavar or parameter.name.upper())}` | {need} | {text} |\n"
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    return f"| {names} | {_default(parameter)} | {text} |\n"


def _default(parameter: Any) -> str:  # noqa: ANN401 - click's, of two origins
    if parameter.required:
        return "required"
    default = getattr(parameter.default, "value", parameter.default)
    if default is None or default in ([], ()):
        return ""
    if isinstance(default, bool):
        return "yes" if default else ""
    return f"`{_escaped(str(default))}`"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
