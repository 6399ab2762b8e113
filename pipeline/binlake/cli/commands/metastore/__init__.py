"""``binlake metastore``: the metastore's service, and what it holds of the lakes."""

from __future__ import annotations

import typer

from binlake.cli.typer_extras import Lazy, lazy_group

_HERE = "binlake.cli.commands.metastore"
COMMANDS = (
    Lazy(
        "serve",
        f"{_HERE}.serve",
        "serve",
        "Answer engines by the Hive Metastore's protocol, and readers by HTTP. SIGTERM and Ctrl-C finish the calls in "
        "hand, then stop.",
    ),
    Lazy(
        "register",
        f"{_HERE}.register",
        "register",
        "Register tables of the metastore's lakes, and bring those that are up to their timelines and names.",
    ),
    Lazy("rebuild", f"{_HERE}.register", "rebuild", "Read the states of tables anew from their timelines and files."),
    Lazy(
        "check",
        f"{_HERE}.check",
        "check",
        "Compare the metastore with its lakes: states, Hive tables, partitions, names, and what is left over.",
    ),
    Lazy("push", f"{_HERE}.push", "push", "Push copies of tables to another catalog."),
)

metastore = typer.Typer(
    cls=lazy_group(COMMANDS),
    help="Serve the metastore that tells engines which tables there are.",
    no_args_is_help=True,
    add_completion=False,
)
