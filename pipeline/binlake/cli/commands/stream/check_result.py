"""What a check of ``binlake check`` comes to, and how all of them are printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from rich.console import Console
from rich.table import Table
from rich.text import Text

from binlake.cli.text import say_json
from hudilake.errors import LakeError


class CheckOutcome(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True)
class Check:
    """One finished check. ``error`` is set when it failed."""

    name: str
    verdict: CheckOutcome
    detail: str
    error: LakeError | None = None

    def to_json(self) -> dict[str, str | int]:
        """Its fields; those of an error only where it failed."""
        fields: dict[str, str | int] = {"check": self.name, "verdict": str(self.verdict), "detail": self.detail}
        if self.error is not None:
            fields |= {"exit_code": self.error.exit_code, "next": self.error.do_next}
        return fields


def run_check(name: str, step: Callable[[], str]) -> Check:
    """The check of a step that returns what is right, and raises what is wrong."""
    try:
        return Check(name, CheckOutcome.OK, step())
    except LakeError as error:
        return failed_check(name, error)


def failed_check(name: str, error: LakeError) -> Check:
    """The check that an error is."""
    place = ", ".join(f"{k}={v}" for k, v in error.where.items())
    return Check(name, CheckOutcome.FAILED, f"{error.what} [{place}]" if place else error.what, error)


def check_of_finding(name: str, detail: str, *, doubtful: bool, error: LakeError | None = None) -> Check:
    """The check that a finding is: failed by an error, a warning if it is doubtful."""
    if error is not None:
        return Check(name, CheckOutcome.FAILED, detail, error)
    return Check(name, CheckOutcome.WARNING if doubtful else CheckOutcome.OK, detail)


def exit_code(checks: Iterable[Check]) -> int:
    """0, or the exit code of the first failure's class."""
    return next((c.error.exit_code for c in checks if c.error is not None), 0)


def write_checks(checks: Iterable[Check]) -> None:
    """A JSON line for every check, on standard output."""
    for one in checks:
        say_json(one.to_json())


def print_checks(checks: Iterable[Check], console: Console) -> None:
    """A table of all checks, then what to do about each failure."""
    colours = {CheckOutcome.OK: "green", CheckOutcome.WARNING: "yellow", CheckOutcome.FAILED: "red"}
    table = Table("check", "verdict", "detail", title="binlake check", title_justify="left")
    checks = list(checks)
    for check in checks:
        table.add_row(check.name, Text(str(check.verdict), style=colours[check.verdict]), Text(check.detail))
    console.print(table)
    for check in checks:
        if check.error is not None and check.error.do_next:
            console.print(f"{check.name}: {check.error.do_next}", markup=False, highlight=False, soft_wrap=True)
