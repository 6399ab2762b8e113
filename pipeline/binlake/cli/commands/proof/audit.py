"""``binlake audit``: every record that a table's commits read has a fate, and files hold what commits recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from binlake.cli.commands.proof.verify import NOT_COMPARED
from binlake.cli.options import LakeConf, Tables
from binlake.cli.reports import each
from binlake.cli.table_options import chosen
from binlake.cli.text import number, say, say_json
from binlake.rows.upsert.outcomes import OUTCOMES
from binlake.rows.upsert.route import Counts
from binlake.settings import Settings
from binlake.tables.audit import Audit, AuditedCommit
from binlake.tables.audit import audit as audit_table
from binlake.tables.catalog import CatalogTable
from hudilake.errors import CorruptDataError
from hudilake.services.fsck import ContentsReport, Severity
from hudilake.wording import counted


def audit(
    conf: LakeConf,
    tables: Tables = None,
    commits: Annotated[bool, typer.Option("--commits", help="Print a line for every commit.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Treat offsets that no commit covers as an error.")] = False,
    contents: Annotated[
        bool, typer.Option("--contents/--no-contents", help="Read all files and compare their rows with the commits.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Account for every record of every commit: read = applied + superseded + filtered + quarantined.

    Each file is read and must hold the rows that its commit recorded. Exit code 0: all that is so. 66: something is
    not. 81: nothing of that, but it is not determined for some files; the output says which and why.
    """
    places, print_audit = chosen(Settings.load(conf), tables), _write if as_json else _print

    unknown: list[str] = []

    def act(place: CatalogTable) -> int:
        done = audit_table(place.storage, contents=contents)
        print_audit(place.name, done, each=commits)
        if done.contents is not None and done.contents.undetermined:
            unknown.append(place.name)
        return CorruptDataError.exit_code if done.errors or (strict and done.gaps) else 0

    code = each(places, act) or (NOT_COMPARED if unknown else 0)
    if not places and not as_json:
        say("the lake holds no tables")
    raise typer.Exit(code)


def _print(table: str, done: Audit, *, each: bool) -> None:
    archived = sum(commit.archived for commit in done.commits)
    parts = [counted(len(done.commits), "commit") + (f" ({number(archived)} archived)" if archived else "")]
    if done.foreign:
        parts.append(f"{number(done.foreign)} of other writers, which say nothing of records")
    parts.append(counted(len(done.errors), "error") if done.errors else "all accounted for")
    gaps = f"{number(len(done.gaps))} gaps between the offset ranges" if done.gaps else "offsets without a gap"
    say(f"{table}: {'; '.join([*parts, gaps])}")
    for stream, counts in done.sums().items():
        say(f"  {stream}: {_sum(counts)}")
    if done.contents is not None:
        say(f"  {_contents(done.contents)}")
    if each:
        for commit in done.commits:
            ranges = ", ".join(_ranges(commit)) or "no offsets"
            say(f"  {commit.instant} {commit.stream}: {_sum(commit.counts)}; {ranges}")
    for finding in done.findings:
        where = f" [{finding.where}]" if finding.where else ""
        if finding.severity is not Severity.INFO or each:
            say(f"  {finding.severity.value}: {finding.what}{where}. Next: {finding.next or 'nothing'}")


def _write(table: str, done: Audit, *, each: bool) -> None:
    lines: list[dict[str, Any]] = []
    if each:
        lines = [{"table": table, **_fields(commit)} for commit in done.commits]
    sums = {stream: vars(counts) for stream, counts in done.sums().items()}
    findings = [{"severity": f.severity, "what": f.what, "instant": f.instant} for f in done.findings]
    counts: dict[str, Any] = {"commits": len(done.commits), "foreign": done.foreign, "gaps": len(done.gaps)}
    if (files := done.contents) is not None:
        counts["contents"] = {"proved": files.proved, "rows": files.rows, "undetermined": files.undetermined}
    for line in [*lines, {"table": table, **counts, "streams": sums, "findings": findings}]:
        say_json(line)


def _fields(commit: AuditedCommit) -> dict[str, Any]:
    return {
        "instant": commit.instant,
        "stream": commit.stream,
        "counts": vars(commit.counts),
        "offsets": commit.ranges.to_json(),
        "rows": commit.rows,
        "archived": commit.archived,
    }


def _contents(files: ContentsReport) -> str:
    holders = counted(files.proved, "file", "holds", "hold")
    text = f"{holders} the {counted(files.rows, 'row')} and deletes that commits recorded"
    if files.undetermined:
        text += f"; {counted(files.undetermined, 'file', 'is', 'are')} not determined (--commits names them)"
    return text


def _sum(counts: Counts) -> str:
    text = " + ".join(f"{name} {number(getattr(counts, name))}" for name in OUTCOMES)
    before = f"; {number(counts.already_applied)} seen before" if counts.already_applied else ""
    return f"read {number(counts.read)} = {text}{before}"


def _ranges(commit: AuditedCommit) -> Iterator[str]:
    for r in commit.ranges:
        yield f"{r.topic}/{r.partition} {r.start} to {r.end - 1}"
