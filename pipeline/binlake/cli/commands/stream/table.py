"""``binlake table``: requests about one table, which the running stream carries out between two batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Annotated

import typer

from binlake.cli.options import AsJson, LakeConf
from binlake.cli.table_options import chosen_one
from binlake.cli.text import number, say, say_json
from binlake.decode.changes import SourceTable
from binlake.position.ledger import Ledger
from binlake.position.table_requests import (
    NO_REQUEST,
    TableRequest,
    change_request,
    forgotten,
    load_requests,
    paused,
    resumed,
)
from binlake.settings import Settings
from binlake.tables.catalog import did_you_mean
from binlake.tables.names import TableNames, source_of
from binlake.tables.other_rows import refuse_lacking
from binlake.tables.presence import is_used
from hudilake.errors import ConfigError
from hudilake.format.definition.kind_support import TableOperation
from hudilake.storage import Storage, open_storage
from hudilake.wording import counted

Name = Annotated[str, typer.Argument(help="The table, as database.table.", metavar="TABLE")]

table = typer.Typer(
    help="Pause, resume, fetch anew or forget one table while the stream runs.",
    no_args_is_help=True,
    add_completion=False,
)


@table.command()
def pause(conf: LakeConf, name: Name, as_json: AsJson = False) -> None:
    """Commit nothing to the table from now on. Its records wait in Kafka, and the other tables go on."""
    settings = Settings.load(conf)
    source = _ask(settings, name, paused)
    if as_json:
        say_json({"table": str(source), "request": "pause"})
        return
    wide = settings.table_rules(source).wide
    if wide is not None:
        say(f"{source}: is paused as soon as the batch in hand is finished. {wide.cells} goes on; what changes there")
        say("is derived once the table is resumed.")
        return
    log, keeper = ("Kafka", "Kafka") if settings.source.mysql is None else ("the binlog", "the server")
    say(f"{source}: is paused as soon as the batch in hand is finished. Its records wait in {log}, so resume it before")
    say(f"{keeper} deletes them; binlake status shows how many wait.")


@table.command()
def resume(conf: LakeConf, name: Name, as_json: AsJson = False) -> None:
    """Let a paused table go on from its own position, and try a stopped table again."""
    source = _ask(Settings.load(conf), name, resumed)
    if as_json:
        say_json({"table": str(source), "request": "resume"})
        return
    say(f"{source}: goes on from its own position within seconds, or when the stream next runs.")


@table.command()
def resync(
    conf: LakeConf,
    name: Name,
    from_source: Annotated[
        bool, typer.Option("--from-source", help="Read the source itself (source.database), without the connector.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch the table anew by an incremental snapshot of Debezium; rows that the source no longer has are deleted."""
    if from_source:
        _resync_from_source(Settings.load(conf), name, as_json=as_json)
        return
    from binlake.source.log_tail import partitions_of
    from binlake.tables.resync_request import resync_request  # needs tables and Kafka; the other commands do not

    settings = Settings.load(conf)
    state, ledger = _stream_of(settings)
    source = _known(settings, ledger, name)
    asked = resync_request(settings, ledger, source, load_requests(state).get(source, NO_REQUEST).resync)
    partitions_of(settings.kafka.client_properties(), str(settings.source.debezium.signal_topic))  # it must be there
    lost = not is_used(_place(settings, source))

    def ask(request: TableRequest) -> TableRequest:
        return dataclasses.replace(forgotten(request) if lost else request, resync=asked)

    change_request(state, source, ask)
    if as_json:
        say_json({"table": str(source), "request": "resync", "of": str(asked.origin), "signal": asked.id})
        return
    say(f"{source}: the stream asks the connector for all rows of {asked.origin} (signal {asked.id}).")
    say("binlake status shows how far it has come. The table stays readable; its old rows go at the end.")


@table.command()
def forget(conf: LakeConf, name: Name, as_json: AsJson = False) -> None:
    """Take back that a table which is gone has commits: it begins anew with the records that wait and come."""
    settings = Settings.load(conf)
    _, ledger = _stream_of(settings)
    source = _known(settings, ledger, name)
    place = _place(settings, source)
    if is_used(place):
        raise ConfigError(
            "the table's directory has files, so its commits are not forgotten",
            do_next="move the directory away first; a table that is whole needs no forgetting",
            table=name,
            path=place.uri,
        )
    _ask(settings, name, forgotten)
    if as_json:
        say_json({"table": str(source), "request": "forget"})
        return
    say(f"{source}: its commits are forgotten within seconds, or when the stream next runs. It begins anew with the")
    say("records that wait and come, and lacks its earlier rows: binlake table resync fetches those of the source. A")
    say("table that shall not come again is left out by tables.exclude.")


def _place(settings: Settings, source: SourceTable) -> Storage:
    """Where the lake table is, or would be."""
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    return root.sub(settings.table_rules(source).path)


def _resync_from_source(settings: Settings, name: str, *, as_json: bool) -> None:
    from binlake.proof.verify.run import Verifier  # needs the database's client and compiled loops

    place = chosen_one(settings, name)
    refuse_lacking(place.rules, TableOperation.RESYNC, name)
    with Verifier(settings) as verifier:
        for done in verifier.resync(place):
            if as_json:
                fields = {"rows": done.rows, "deletes": done.deletes, "position": str(done.position)}
                say_json({"table": name, "request": "resync", **fields})
                continue
            counts = f"{counted(done.rows, 'row')} written, {number(done.deletes)} old rows deleted"
            say(f"{name}: {counts}, as of {done.position} of the source")


def _ask(settings: Settings, name: str, change: Callable[[TableRequest], TableRequest]) -> SourceTable:
    state, ledger = _stream_of(settings)
    source = _known(settings, ledger, name)
    change_request(state, source, change)
    return source


def _stream_of(settings: Settings) -> tuple[Storage, Ledger]:
    """The state directory and the ledger of the stream. Raises ConfigError if it has not finished a batch yet."""
    state = open_storage(settings.state_uri, settings.state_options())
    ledger = Ledger.load(state, settings.name)
    if ledger is None:
        raise ConfigError(
            "the stream has no ledger yet", do_next="start the stream and wait for its first batch", path=state.uri
        )
    return state, ledger


def _known(settings: Settings, ledger: Ledger, name: str) -> SourceTable:
    """The table that the source calls so now, if the stream has met it. Raises ConfigError, CorruptDataError."""
    database, _, bare = name.partition(".")
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    source = source_of(TableNames.load(root, settings.name), SourceTable(database, bare))
    known = {*ledger.tables, *ledger.behind}
    if source not in known:
        raise ConfigError(
            "the stream has met no such table",
            do_next=did_you_mean(name, map(str, known)) or "wait for its first rows",
            table=name,
        )
    return source
