"""Arguments and options that several commands take.

It stands alone: ``binlake run`` imports it before Spark starts, and the modules that open tables only afterwards.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hudilake.errors import ConfigError

LakeConf = Annotated[Path, typer.Argument(help="The settings file (YAML).", metavar="CONF")]
Table = Annotated[str, typer.Argument(help="The table, as database.table or by its path in the lake.", metavar="TABLE")]
Tables = Annotated[
    list[str] | None,
    typer.Argument(help="Tables, as database.table or by path in the lake; all tables if none.", metavar="TABLE"),
]
#: Of a command that prints JSON anyhow: for those who give it to every command.
OnlyJson = Annotated[bool, typer.Option("--json", help="Print JSON, as without this option.")]
#: Of a command that asks before it changes something.
AsJsonUnasked = Annotated[bool, typer.Option("--json", help="Print a JSON object, and ask nothing: give --yes too.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON line for every table.")]


def refuse_question(*, as_json: bool, yes: bool, dry_run: bool) -> None:
    """A command whose lines a program reads cannot ask. Raises ConfigError if it would have to."""
    if as_json and not (yes or dry_run):
        raise ConfigError("--json asks nothing", do_next="give --yes, or --dry-run")
