"""The options that name exported scans of a table of an HBase-like store."""

from __future__ import annotations

from typing import Annotated

import typer

from binlake.cli.text import epoch_ms
from binlake.decode.changes import SourceTable
from binlake.settings import Settings
from binlake.source.scan_read import Scan
from hudilake.errors import ConfigError

ScanOf = Annotated[
    str | None,
    typer.Option("--scan", help="The files are exported scans of this namespace.table, not dumps.", metavar="TABLE"),
]
Files = Annotated[str, typer.Option("--files", help="Which files of --scan below --from: a glob pattern.")]
At = Annotated[
    str | None,
    typer.Option("--at", help="When the scan was made: 2026-11-21T05:30 (UTC); default: each file's last change."),
]


def scan_options(scan: ScanOf = None, files: Files = "*", at: At = None) -> Scan | None:
    """The scans that the options name; None for dumps. Raises ConfigError."""
    if scan is None:
        if files != "*" or at is not None:
            raise ConfigError("--files and --at belong to --scan", do_next="give --scan with the name of the table")
        return None
    namespace, _, table = scan.replace(":", ".").rpartition(".")
    source = SourceTable.named(namespace or "default", table)
    if source is None:
        raise ConfigError("this is no name of a table", do_next="write namespace.table", scan=scan)
    return Scan(source, files, epoch_ms(at))


def check_declared(settings: Settings, scan: Scan) -> None:
    """Raise ConfigError if the settings have no table of cells for a scan."""
    known = [store.source for store in settings.tables.cells]
    if str(scan.table) not in known:
        raise ConfigError(
            f"no entry of tables.cells has the source {scan.table}",
            do_next=f"give one of {', '.join(known)}" if known else "declare the table in tables.cells",
            scan=str(scan.table),
        )
