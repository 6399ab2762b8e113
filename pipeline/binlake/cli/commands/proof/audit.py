"""``binlake audit``: every record that a table's commits read has a fate, and files hold what commits recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Annotated, Any

import typer

from binlake.cli.commands.proof.verify import NOT_COMPARED
from binlake.cli.options import LakeConf, Tables
from binlake.cli.reports import each
from binlake.cli.table_options import chosen
from binlake.cli.text import number, say, say_json
from binlake.load.replay.quarantine_records import HeldOffsets
from binlake.rows.upsert.outcomes import OUTCOMES
from binlake.rows.upsert.route import Counts
from binlake.settings import Settings
from binlake.tables.audit import Audit, AuditedCommit
from binlake.tables.audit import audit as audit_table
from binlake.tables.catalog import CatalogTable
from hudilake.errors import CorruptDataError
from hudilake.services.fsck import Check, ContentsReport, Finding, Severity
from hudilake.storage import open_storage
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

    Each file is read and must hold the rows that its commit recorded, and the quarantine records of each commit that
    counts some. Exit code 0: all that is so. 66: something is not. 81: nothing of that, but it is not determined for
    some files or commits; the output says which and why.
    """
    settings = Settings.load(conf)
    places, print_audit = chosen(settings, tables), _write if as_json else _print
    quarantine = _Quarantine(settings)

    unknown: list[str] = []

    def act(place: CatalogTable) -> int:
        done = audit_table(place.storage, contents=contents)
        lost = quarantine.lost(done.commits)
        done.add(lost)
        print_audit(place.name, done, each=commits)
        open_commits = any(one.severity is Severity.WARNING for one in lost)
        if open_commits or (done.contents is not None and done.contents.undetermined):
            unknown.append(place.name)
        return CorruptDataError.exit_code if done.errors or (strict and done.gaps) else 0

    code = each(places, act) or (NOT_COMPARED if unknown else 0)
    if not places and not as_json:
        say("the lake holds no tables")
    raise typer.Exit(code)


class _Quarantine:
    """What a stream's quarantine holds; it is read once, if a commit asks for it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def _held(self) -> HeldOffsets:
        lake = self._settings.lake
        return HeldOffsets.of(open_storage(lake.uri, lake.storage_options()).sub(self._settings.quarantine_path))

    def lost(self, commits: Iterable[AuditedCommit]) -> list[Finding]:
        """The commits that count quarantined records of whose offsets the quarantine has none. Raises as
        ``HeldOffsets.of``."""
        return [
            self._finding(commit)
            for commit in commits
            if commit.counts.quarantined and commit.ranges and commit.stream == self._settings.name
            if not self._held.has_any(commit.ranges)
        ]

    def _finding(self, commit: AuditedCommit) -> Finding:
        said = counted(commit.counts.quarantined, "record", "is", "are")
        what = f"{said} said to be in quarantine, which has none of the commit's offsets"
        if self._held.erased:
            what = f"{what}: records were erased from it, and nothing tells whether these were"
            return Finding(Severity.WARNING, Check.OFFSETS, what, instant=commit.instant, advice="see binlake erase")
        advice = "bring the quarantine table back from a copy, or read the offsets again from Kafka"
        return Finding(Severity.ERROR, Check.OFFSETS, what, instant=commit.instant, advice=advice)


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
