"""How commands over several tables report: a line or a JSON object for each table, and its error without stopping the
others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from binlake.cli.text import print_error, say, say_json, terminal
from binlake.tables.catalog import CatalogTable
from binlake.tables.presence import judged
from hudilake.errors import LakeError
from hudilake.table.directory import BrokenTable


class CommandReport(Protocol):
    """What was done for a table. ``seconds``: the total time. ``error``: the one that ended it early."""

    table: str
    seconds: float
    error: LakeError | None


def print_line(
    report: CommandReport, parts: Iterable[str], *, as_json: bool, fields: Mapping[str, object] | None = None
) -> None:
    """Print a report.

    Args:
        report: of one table.
        parts: what its line says after the table's name.
        as_json: whether a JSON object is printed instead.
        fields: those of the object after the table's name; None for all of the report's own.
    """
    if not as_json:
        say(f"{report.table}: {'; '.join(parts)}")
        return
    own = {**vars(report), "seconds": round(report.seconds, 3)} if fields is None else fields
    say_json({"table": report.table, **own}, _plain)


def _plain(value: object) -> object:
    """An error as JSON."""
    if not isinstance(value, LakeError):
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    where = {key: str(text) for key, text in value.where.items()}
    return {"what": value.what, "where": where, "next": value.do_next}


def each(tables: Iterable[CatalogTable | BrokenTable], action: Callable[[CatalogTable], int | None]) -> int:
    """An action for every table; one that fails is reported and does not stop the others.

    Returns the exit code: the first that is not 0, of an action or of its error.
    """
    code = 0
    for table in tables:
        try:
            if isinstance(table, BrokenTable):
                raise table.error
            ended = action(table)
            code = code or ended or 0
        except LakeError as error:
            seen = judged(table.storage, error) if isinstance(table, CatalogTable) else error
            code = report_error(table.name, seen, code)
    return code


def report_error(table: str, error: LakeError, code: int) -> int:
    """Print the error of one table of several; the exit code, of which the first counts."""
    sys.stdout.flush()
    error.where.setdefault("table", table)
    print_error(error, terminal(stderr=True))
    return code or error.exit_code
