"""What commands that run a table service say of each table: a line, or a JSON object."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from binlake.cli.lake_options import told
from binlake.cli.text import say
from binlake.tables.catalog import CatalogTable
from binlake.tables.presence import judged
from hudilake.errors import BinlakeError
from hudilake.table.directory import BrokenTable


class ServiceReport(Protocol):
    """What was done for a table. ``seconds``: the total time. ``error``: the one that ended it early."""

    table: str
    seconds: float
    error: BinlakeError | None


Report = TypeVar("Report", bound=ServiceReport)


def serve(
    found: Sequence[CatalogTable | BrokenTable],
    service: Callable[[CatalogTable], Report],
    broken: Callable[[BrokenTable], Report],
    show: Callable[[Report], None],
    *,
    as_json: bool,
) -> int:
    """Run a service for each table and show its report; returns the exit code.

    Args:
        found: the tables.
        service: runs it for a table that can be opened.
        broken: the report of one that cannot.
        show: prints a report.
        as_json: whether reports are printed as JSON.
    """
    code = 0
    for place in found:
        report = broken(place) if isinstance(place, BrokenTable) else service(place)
        show(report)
        if report.error is not None:
            seen = report.error if isinstance(place, BrokenTable) else judged(place.storage, report.error)
            code = told(report.table, seen, code)
    if not found and not as_json:
        say("the lake holds no tables")
    return code


def print_line(report: ServiceReport, parts: Iterable[str], *, as_json: bool) -> None:
    """Print a report. ``parts``: what its line says; as JSON, it has all fields instead."""
    if as_json:
        sys.stdout.write(json.dumps(_fields(report), ensure_ascii=False) + "\n")
        sys.stdout.flush()
        return
    say(f"{report.table}: {'; '.join(parts)}")


def _fields(report: ServiceReport) -> dict[str, object]:
    fields = {**vars(report), "seconds": round(report.seconds, 3)}
    if (error := report.error) is not None:
        where = {key: str(value) for key, value in error.where.items()}
        fields["error"] = {"what": error.what, "where": where, "next": error.do_next}
    return fields
