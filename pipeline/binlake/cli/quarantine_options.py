"""The options that choose quarantined records."""

from __future__ import annotations

from typing import Annotated

import typer

from binlake.cli.text import epoch_ms
from binlake.load.replay.quarantine_records import Selection, named

Records = Annotated[
    list[str] | None,
    typer.Argument(help="Records as topic/partition:offset; all if none.", metavar="RECORD", show_default=False),
]
Reasons = Annotated[list[str] | None, typer.Option("--reason", help="Only records with this reason; may be repeated.")]
OfTables = Annotated[
    list[str] | None,
    typer.Option("--table", help="Only records of this database.table (- for none); may be repeated."),
]
Since = Annotated[str | None, typer.Option("--since", help="Quarantined from 2026-11-21 or 2026-11-21T05:30 (UTC) on.")]
Until = Annotated[str | None, typer.Option("--until", help="Quarantined before this time.")]


def selected(
    records: Records = None,
    reason: Reasons = None,
    table: OfTables = None,
    since: Since = None,
    until: Until = None,
) -> Selection:
    """The records that the options choose, without those that were replayed. Raises ConfigError."""
    return Selection(
        reasons=frozenset(reason or ()),
        tables=frozenset(table or ()),
        names=frozenset(map(named, records or ())),
        since_ms=epoch_ms(since),
        until_ms=epoch_ms(until),
    )
