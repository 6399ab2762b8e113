"""``binlake metastore push``: copies of the catalog's tables in other catalogs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from binlake.cli.commands.metastore.options import MetastoreConf
from binlake.cli.options import AsJson
from binlake.cli.reports import print_line, report_error
from binlake.cli.text import say
from hudilake.clock import monotonic_s
from hudilake.errors import LakeError
from hudilake.extras import require_extra
from hudilake.wording import counted
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.lake.opening import opened_metastore
from lakemetastore.settings.service import MetastoreSettings

if TYPE_CHECKING:
    from lakemetastore.glue import GluePush

Tables = Annotated[
    list[str] | None, typer.Argument(help="Tables, as database.table; all of all databases if none.", metavar="TABLE")
]
Region = Annotated[str | None, typer.Option("--region", help="The region; by default that of AWS' own settings.")]
Endpoint = Annotated[str | None, typer.Option("--endpoint-url", help="Another address of Glue.")]
Prune = Annotated[bool, typer.Option("--prune", help="Delete pushed copies whose tables are gone or renamed, too.")]

push = typer.Typer(help="Push copies of tables to another catalog.", no_args_is_help=True, add_completion=False)


@push.callback()
def targets() -> None:
    """Push copies of tables to another catalog."""


@dataclass
class PushReport:
    """What a push did for a table. ``added``, ``altered``, ``removed``: partitions."""

    table: str
    change: str
    added: int
    altered: int
    removed: int
    seconds: float
    error: LakeError | None = None

    def parts(self) -> list[str]:
        """For people."""
        counts = {"added": self.added, "altered": self.altered, "removed": self.removed}
        return [self.change, *(f"{counted(count, 'partition')} {what}" for what, count in counts.items() if count)]


@push.command()
def glue(
    conf: MetastoreConf,
    tables: Tables = None,
    region: Region = None,
    endpoint_url: Endpoint = None,
    prune: Prune = False,
    as_json: AsJson = False,
) -> None:
    """Copy tables and their partitions to AWS Glue's Data Catalog. Credentials are those of AWS' own settings. A table
    of Glue that was not pushed from here is left alone."""
    code = 0
    with opened_metastore(MetastoreSettings.load(conf)) as metastore:
        pushing = _glue(metastore.catalog, region, endpoint_url)
        for report in _reports(pushing, metastore.catalog, tables, prune=prune):
            if report.error is not None:
                code = report_error(report.table, report.error, code)
            if as_json or report.error is None:
                print_line(report, report.parts(), as_json=as_json)
    if not as_json:
        say("readers of Glue see these copies as of now; push again after changes")
    raise typer.Exit(code)


def _glue(catalog: Catalog, region: str | None, endpoint: str | None) -> GluePush:
    require_extra("lakemetastore", "glue", "boto3")
    from lakemetastore.glue import GluePush

    return GluePush.at(catalog, region, endpoint)


def _reports(pushing: GluePush, catalog: Catalog, tables: list[str] | None, *, prune: bool) -> Iterator[PushReport]:
    wanted = tables or [
        f"{database}.{name}" for database in catalog.databases.names() for name in catalog.tables.names(database)
    ]
    for table in wanted:
        database, _, name = table.partition(".")
        began = monotonic_s()
        try:
            done = pushing.push(database, name)
        except LakeError as error:
            yield PushReport(table, "failed", 0, 0, 0, monotonic_s() - began, error)
            continue
        yield PushReport(table, done.change, done.added, done.altered, done.removed, monotonic_s() - began)
    for database in sorted({table.partition(".")[0] for table in wanted}) if prune else ():
        for gone in pushing.prune(database):
            yield PushReport(gone.table, gone.change, 0, 0, 0, 0.0)
