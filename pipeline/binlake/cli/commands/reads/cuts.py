"""``binlake cuts``: the places between two source transactions at which all tables of a stream can be read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

import typer
from rich.table import Table as Grid

from binlake.cli.options import LakeConf
from binlake.cli.table_options import chosen
from binlake.cli.text import number, say, say_json, terminal
from binlake.position.cuts import Cut, declared_cuts
from binlake.position.ledger import Ledger
from binlake.position.tags import Tags
from binlake.settings import Settings
from binlake.source.offsets import NO_OFFSETS
from hudilake import Table
from hudilake.errors import ConfigError
from hudilake.format.timeline.instant import RESTORE
from hudilake.read import instant_of
from hudilake.storage import open_storage
from hudilake.table.directory import BrokenTable
from hudilake.table.table import HudiTable

#: A date or an instant; anything else is a transaction.
_MOMENT = re.compile(r"\d{14,17}|\d{4}-\d\d-\d\d([ T].*)?")
_SHOWN = 40


def cuts(
    conf: LakeConf,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON line for every cut.")] = False,
) -> None:
    """List the places between two source transactions at which all tables can be read. Changes nothing."""
    settings = Settings.load(conf)
    declared = stream_cuts(settings)
    if as_json:
        for cut in declared:
            place = {"completed": cut.completed, "transaction": cut.transaction, "commits": dict(cut.commits)}
            say_json(place)
        return
    if not declared:
        say(_why_none(settings))
        return
    grid = Grid("complete at", "behind transaction", "tables")
    for cut in declared[-_SHOWN:]:
        grid.add_row(cut.completed, cut.transaction or "-", number(len(cut.commits)))
    terminal().print(grid, markup=False)
    more = f"; the last {_SHOWN} are shown, --json has all" if len(declared) > _SHOWN else ""
    say(f"{number(len(declared))} cuts{more}")


def stream_cuts(settings: Settings) -> list[Cut]:
    """The cuts of a stream's tables, the oldest first; ``commits`` by the URI of each table's root.

    Raises the error of a table that cannot be opened: nobody knows whether it was there; StorageError.
    """
    newest = _newest(settings)  # before the histories: what a commit adds meanwhile lies beyond it
    histories, restores = {}, {}
    for table in chosen(settings, None):
        if isinstance(table, BrokenTable):
            raise table.error
        opened = HudiTable.open(table.storage)
        histories[table.storage.uri] = Table(opened).history()
        restores[table.storage.uri] = [
            one.completion_time or "" for one in opened.timeline.completed_actions({RESTORE})
        ]
    return declared_cuts(settings.name, histories, restores, newest)


def _newest(settings: Settings) -> Mapping[int, int] | None:
    """Where the transaction topic stands in all tables, by the ledger of the stream."""
    ledger = Ledger.load(open_storage(settings.state_uri, settings.state_options()), settings.name)
    if not settings.batch.transaction_consistent or ledger is None or not ledger.batch or ledger.behind:
        return None
    return dict(ledger.positions.get(settings.kafka.transaction_topic or "", {})) or None


def chosen_cut(settings: Settings, at: str) -> Cut:
    """A cut of a stream.

    Args:
        settings: of the stream.
        at: a tag; a transaction in the words of the connector: the cut behind it; or a time (UTC): the newest cut that
            was complete by then.

    Raises ConfigError if there is none, with the nearest; and as ``stream_cuts``.
    """
    tag = Tags(open_storage(settings.state_uri, settings.state_options())).find(at.strip())
    if tag is not None:
        return Cut({}, tag.commits, NO_OFFSETS, tag.completed, tag.transaction)
    declared = stream_cuts(settings)
    if not declared:
        raise ConfigError(_why_none(settings), do_next="read each table by itself, with --as-of", stream=settings.name)
    oldest, newest = declared[0], declared[-1]
    if _MOMENT.fullmatch(at.strip()):
        time = instant_of(at.strip())
        cut = next((one for one in reversed(declared) if one.completed <= time), None)
        nearest = f"the oldest cut is of {oldest.completed}"
    else:
        cut = next((one for one in reversed(declared) if one.transaction == at), None)
        nearest = f"the newest cut ends with {newest.transaction or newest.completed}"
    if cut is None:
        raise ConfigError(
            f"all tables together stand at no such place: {nearest}",
            do_next="choose one of those that binlake cuts lists",
            at=at,
        )
    return cut


def _why_none(settings: Settings) -> str:
    if not settings.batch.transaction_consistent:
        return "the stream has no cuts: batch.transaction_consistent is off"
    return "the stream has no cut yet: one comes with a whole batch"
