"""``binlake metastore register`` and ``rebuild``: lake tables in the catalog, and their states read anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import typer

from binlake.cli.commands.metastore.options import LakeTables, MetastoreConf
from binlake.cli.options import AsJson
from binlake.cli.reports import print_line, report_error
from binlake.cli.text import say
from hudilake.clock import monotonic_s
from hudilake.errors import LakeError
from hudilake.table.directory import BrokenTable
from lakemetastore.lake.named import chosen
from lakemetastore.lake.naming import NamedTable
from lakemetastore.lake.opening import Metastore, opened_metastore
from lakemetastore.lake.reconcile import TableReconciliation
from lakemetastore.settings.service import MetastoreSettings


@dataclass
class RegisterReport:
    """What a registration did for a table. ``created``, ``altered``: Hive tables. ``added``, ``dropped``: partitions of
    all of them."""

    table: str
    created: tuple[str, ...]
    altered: tuple[str, ...]
    added: int
    dropped: int
    seconds: float
    error: LakeError | None = None

    @classmethod
    def of(cls, reconciliation: TableReconciliation) -> RegisterReport:
        """From what the reconciler tells."""
        done = reconciliation.done
        counts = done.created, done.altered, done.added, done.dropped
        return cls(reconciliation.table, *counts, reconciliation.seconds, reconciliation.error)

    def parts(self) -> list[str]:
        """For people."""
        said = [
            f"{len(self.created)} Hive tables created" if self.created else "",
            f"{len(self.altered)} altered" if self.altered else "",
            f"{self.added} partitions added" if self.added else "",
            f"{self.dropped} partitions dropped" if self.dropped else "",
        ]
        return [part for part in said if part] or ["as it should be"]


@dataclass
class RebuildReport:
    """What was wrong in the state of a table."""

    table: str
    differences: tuple[str, ...]
    seconds: float
    error: LakeError | None = None

    def parts(self) -> list[str]:
        """For people."""
        return [f"{len(self.differences)} differences put right", *self.differences] if self.differences else ["equal"]


def register(conf: MetastoreConf, tables: LakeTables = None, as_json: AsJson = False) -> None:
    """Register tables of the metastore's lakes, and bring those that are up to their timelines and names."""

    def reports(metastore: Metastore) -> Iterator[RegisterReport]:
        return map(RegisterReport.of, metastore.reconciler.run_once(tables or ()))

    _run(conf, reports, as_json=as_json)


def rebuild(conf: MetastoreConf, tables: LakeTables = None, as_json: AsJson = False) -> None:
    """Read the states of tables anew from their timelines and files."""

    def reports(metastore: Metastore) -> Iterator[RebuildReport]:
        for lake_tables in chosen(metastore.reconciler.lakes, tables or ()):
            for table in lake_tables:
                yield _rebuilt(metastore, table)

    _run(conf, reports, as_json=as_json)


def _rebuilt(metastore: Metastore, table: NamedTable | BrokenTable) -> RebuildReport:
    if isinstance(table, BrokenTable):
        return RebuildReport(table.name, (), 0.0, table.error)
    began = monotonic_s()
    try:
        rebuild_changes = metastore.lakes.rebuild(table.storage)
    except LakeError as error:
        return RebuildReport(table.full_name, (), monotonic_s() - began, error)
    return RebuildReport(table.full_name, tuple(rebuild_changes), monotonic_s() - began)


def _run(
    conf: MetastoreConf,
    reports: Callable[[Metastore], Iterator[RegisterReport] | Iterator[RebuildReport]],
    *,
    as_json: bool,
) -> None:
    code, count = 0, 0
    with opened_metastore(MetastoreSettings.load(conf)) as metastore:
        for report in reports(metastore):
            count += 1
            if report.error is not None:
                code = report_error(report.table, report.error, code)
            if as_json or report.error is None:
                print_line(report, report.parts(), as_json=as_json)
    if not count and not as_json:
        say("the lakes of the metastore hold no such tables")
    raise typer.Exit(code)
