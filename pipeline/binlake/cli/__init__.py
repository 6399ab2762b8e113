"""Commands for people: the app, its display, and what commands share; ``commands`` has a module a command."""

from __future__ import annotations


def main() -> None:
    """The ``binlake`` command."""
    # Here and not above: the parts of this package are used by others, without Spark and without the commands.
    from binlake.cli.app import main as run_command

    run_command()
