"""``binlake cuts`` and ``binlake tag``: the places between two source transactions at which the tables of a stream can
be read, and those of them that have a name and are kept until they are deleted."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer
from rich.table import Table as Grid

from binlake.cli.options import LakeConf
from binlake.cli.table_options import chosen, shared
from binlake.cli.text import number, say, say_json, terminal
from binlake.position.tags import Tag, Tags
from binlake.proof.history.moments import StreamLake
from binlake.settings import Settings
from hudilake.errors import ConfigError
from hudilake.storage import open_storage
from hudilake.table.directory import BrokenTable
from hudilake.table.table import HudiTable
from hudilake.wording import counted

tag = typer.Typer(no_args_is_help=True, help="Create, delete and list named cuts that are kept.")

Name = Annotated[str, typer.Argument(help="The tag: a letter, then letters, digits, dots, dashes.", metavar="TAG")]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        help="The cut behind this transaction, at a place of the binlog, or the newest one that was complete at a "
        "time; the newest of all.",
    ),
]


_SHOWN = 40
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON line for every tag.")]


@tag.command("create")
def create(conf: LakeConf, name: Name, at: At = None, as_json: AsJson = False) -> None:
    """Keep a cut in all tables: none of its files is cleaned, and binlake query --at TAG reads it."""
    settings = Settings.load(conf)
    cut = StreamLake(settings).cut_at(at or "9999-12-31")
    made = _tags(settings).create(name, cut, _tables(settings), getpass.getuser())
    if as_json:
        say_json(_fields(made))
        return
    behind = f" behind transaction {made.transaction}" if made.transaction else ""
    say(f"tag {made.name} keeps {counted(len(made.commits), 'table')} as of {made.completed}{behind}")


@tag.command("delete")
def delete(conf: LakeConf, name: Name, as_json: AsJson = False) -> None:
    """Delete a tag; the next clean may delete the files that it alone has kept."""
    settings = Settings.load(conf)
    if not _tags(settings).delete(name, _tables(settings)):
        raise ConfigError("there is no such tag", do_next="see binlake tag list", tag=name)
    if as_json:
        say_json({"tag": name, "deleted": True})
    else:
        say(f"tag {name} is gone")


@tag.command("list")
def list_all(conf: LakeConf, as_json: AsJson = False) -> None:
    """Print the tags of a stream, by name. Changes nothing."""
    known = _tags(Settings.load(conf)).all()
    if as_json:
        for one in known:
            say_json(_fields(one))
        return
    grid = Grid(
        "tag",
        "complete at",
        "behind transaction",
        "tables",
        title=counted(len(known), "tag"),
        title_justify="left",
    )
    for one in known:
        grid.add_row(one.name, one.completed, one.transaction or "-", number(len(one.commits)))
    terminal().print(grid, markup=False)


def _fields(one: Tag) -> dict[str, object]:
    return {
        "tag": one.name,
        "completed": one.completed,
        "transaction": one.transaction,
        "commits": dict(one.commits),
    }


def _tags(settings: Settings) -> Tags:
    return Tags(open_storage(settings.state_uri, settings.state_options()))


def _tables(settings: Settings) -> dict[str, HudiTable]:
    """The tables of the stream by the URI of their roots, opened as writers."""
    tables = {}
    for place in chosen(settings, None):
        if isinstance(place, BrokenTable):
            raise place.error
        tables[place.storage.uri] = HudiTable.open(place.storage, locking=shared(settings, "tag"))
    return tables


def cuts(
    conf: LakeConf,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON line for every cut.")] = False,
) -> None:
    """List the places between two source transactions at which all tables can be read. Changes nothing."""
    lake = StreamLake(Settings.load(conf))
    declared = lake.cuts()
    if as_json:
        for cut in declared:
            place = {"completed": cut.completed, "transaction": cut.transaction, "commits": dict(cut.commits)}
            say_json(place | {"at": lake.words(cut), "missing": dict(cut.missing)})
        return
    if not declared:
        say(lake.why_none())
        return
    grid = Grid("complete at", "behind transaction", "tables")
    for cut in declared[-_SHOWN:]:
        lacks = f" of {number(len(cut.commits) + len(cut.missing))}" if cut.missing else ""
        grid.add_row(cut.completed, cut.transaction or "-", f"{number(len(cut.commits))}{lacks}")
    terminal().print(grid, markup=False)
    more = f"; the last {_SHOWN} are shown, --json has all" if len(declared) > _SHOWN else ""
    say(f"{number(len(declared))} cuts{more}")
