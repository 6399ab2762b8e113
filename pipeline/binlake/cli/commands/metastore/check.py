"""``binlake metastore check``: the metastore against its lakes."""

from __future__ import annotations

from typing import Annotated

import typer

from binlake.cli.commands.metastore.options import MetastoreConf
from binlake.cli.reports import report_error
from binlake.cli.text import say, say_json
from hudilake.errors import CorruptDataError, LakeError
from hudilake.wording import counted
from lakemetastore.lake.check import Check, Finding
from lakemetastore.lake.opening import Metastore, opened_metastore
from lakemetastore.settings.service import MetastoreSettings

Repair = Annotated[
    bool, typer.Option("--repair", help="Put right what the timelines say otherwise, and drop what is left over.")
]


def check(
    conf: MetastoreConf,
    repair: Repair = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON line for every finding.")] = False,
) -> None:
    """Compare the metastore with its lakes: states, Hive tables, partitions, names, and what is left over."""
    with opened_metastore(MetastoreSettings.load(conf)) as metastore:
        all_findings = list(_checker(metastore).findings())
        for finding in all_findings:
            _print(finding, as_json=as_json)
        code = _repaired(metastore, all_findings) if repair else 0
        left = list(_checker(metastore).findings()) if repair and all_findings else all_findings
    if not as_json:
        done = f", {len(all_findings) - len(left)} put right" if repair else ""
        say(
            f"{counted(len(all_findings), 'finding')}{done}"
            if all_findings
            else "the metastore says what its lakes say"
        )
    raise typer.Exit(code or (CorruptDataError.exit_code if left else 0))


def _checker(metastore: Metastore) -> Check:
    return Check(metastore.registration, metastore.reconciler.lakes)


def _repaired(metastore: Metastore, found: list[Finding]) -> int:
    """Do the repairs, each once; returns the exit code. One that fails does not stop the others."""
    code = 0
    done: set[tuple[str, str]] = set()
    for finding in found:
        if finding.repair is None or (finding.where, finding.next) in done:
            continue
        done.add((finding.where, finding.next))
        try:
            finding.repair()
        except LakeError as error:
            code = report_error(finding.where, error, code)
    return code


def _print(finding: Finding, *, as_json: bool) -> None:
    if as_json:
        fields = {"where": finding.where, "what": finding.what, "next": finding.next}
        say_json(fields)
        return
    say(f"{finding.where}: {finding.what}")
    say(f"  next: {finding.next}")
