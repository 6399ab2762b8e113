"""``binlake status``: the state of a stream and its tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from math import inf
from typing import Annotated, Any

import typer
from rich.table import Table as Grid

from binlake.cli.options import LakeConf, Tables
from binlake.cli.remarks import bucket_remark, loading_remark, ring_remark
from binlake.cli.reports import each
from binlake.cli.table_options import chosen
from binlake.cli.text import CellColumn, duration, fill, fitting, lag_words, number, say, say_json, size, terminal
from binlake.position.in_hand import in_hand_words
from binlake.settings import Settings
from binlake.source.binlog.topic import is_binlog
from binlake.stream.monitoring.held import HeldTable, held_tables
from binlake.stream.monitoring.status import (
    COUNT_BYTES,
    StatusSources,
    StreamStatus,
    TableStatus,
    WideStatus,
    no_ledger_words,
    stream_status,
)
from binlake.stream.monitoring.writers import Writer
from binlake.tables.catalog import CatalogTable
from binlake.tables.unmatched import UnmatchedName, known_columns, unmatched_columns, unmatched_tables
from hudilake.clock import now_ms
from hudilake.storage import open_storage
from hudilake.table.directory import BrokenTable
from hudilake.wording import counted


def status(
    conf: LakeConf,
    tables: Tables = None,
    partitions: Annotated[bool, typer.Option("--partitions", help="Print a line for every topic partition.")] = False,
    ask_kafka: Annotated[bool, typer.Option("--kafka/--no-kafka", help="Ask Kafka for the ends of the topics.")] = True,
    kafka_timeout_s: Annotated[float, typer.Option(help="How long Kafka may take to answer, in seconds.")] = 5.0,
    count: Annotated[bool, typer.Option("--count", help="Count the rows of large tables with log files too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines: the stream, then the tables.")] = False,
) -> None:
    """Print the position and lag of the stream, and the state of each table. Changes nothing."""
    settings = Settings.load(conf)
    stream = stream_status(settings, kafka_timeout_s if ask_kafka else None)
    unmatched = _unmatched(settings)
    sources, places = StatusSources.load(settings, stream.ledger), chosen(settings, tables)
    if as_json:
        names = [dataclasses.asdict(one) for one in unmatched]
        fields = {**_stream_fields(stream, str(conf)), "quarantined": dict(sources.waiting), "unmatched": names}
        say_json(fields)
    else:
        _print_stream(stream, each=partitions, conf=str(conf))
        for one in unmatched:
            say(f"  matches nothing so far: {one}")
        for line in [] if tables else _quarantined(sources, places, str(conf)):
            say(f"  {line}")
    statuses: list[TableStatus] = []

    def act(place: CatalogTable) -> None:
        statuses.append(sources.of(place, inf if count else COUNT_BYTES))

    code = each(places, act)
    if stream.ledger is None and not as_json:
        say(f"  {no_ledger_words(statuses)}")
    if as_json:
        for table in statuses:
            say_json({"table": table.name, **dataclasses.asdict(table)})
    elif statuses:
        _print_tables(statuses, str(conf))
    raise typer.Exit(code)


def _unmatched(settings: Settings) -> list[UnmatchedName]:
    """The names of the settings that match nothing that the stream has met; none before it has met anything."""
    columns = known_columns(settings, open_storage(settings.lake.uri, settings.lake.storage_options()))
    return [*unmatched_tables(settings, columns), *unmatched_columns(settings, columns)] if columns else []


def _quarantined(sources: StatusSources, places: Sequence[CatalogTable | BrokenTable], conf: str) -> Iterator[str]:
    """A line for each table that has waiting records in the quarantine and is not among those of the lake."""
    there = {str(place.source) for place in places if isinstance(place, CatalogTable)}
    for name, count in sorted(sources.waiting.items()):
        if name not in there:
            whose = f"{name}, which the lake does not have" if name else "no known table"
            yield f"quarantined: {number(count)} of {whose}; binlake quarantine list {conf} says why"


def _print_stream(stream: StreamStatus, *, each: bool, conf: str) -> None:
    say(f"stream {stream.name}: {_run(stream.run)}")
    ledger = stream.ledger
    if ledger is None:
        return
    count = sum(map(len, ledger.positions.values()))
    lag = f"lag unknown: {stream.kafka or 'not asked'}"
    if stream.lag is not None:
        lag = lag_words(stream.lag, in_bytes=stream.in_bytes)
    say(
        f"  {counted(ledger.batch, 'batch')}; {counted(count, 'partition')} of "
        f"{counted(len(ledger.positions), 'topic')}; {lag}"
    )
    for line in in_hand_words(stream.in_hand):
        say(f"  {line}")
    for held in _held(stream, conf):
        _print_held(held)
    if each:
        lags = stream.lags()
        for topic, partition, position in sorted(ledger.positions.places()):
            known = lags.knows(topic, partition)
            lag = f", {lag_words(lags.at(topic, partition), in_bytes=is_binlog(topic))}" if known else ""
            say(f"  {topic}/{partition}: {position}{lag}")


def _held(stream: StreamStatus, conf: str) -> list[HeldTable]:
    if stream.ledger is None:
        return []
    return list(held_tables(stream.ledger, stream.requests, stream.facts, conf))


def _print_held(held: HeldTable) -> None:
    if held.state == "behind":
        say(f"  behind: {held.table}; the stream brings it up to date by itself")
        return
    since = f" since {duration(now_ms() - held.since_ms)}" if held.since_ms is not None else ""
    waiting = f"; {_waiting(held)}" if held.state in ("paused", "stopped") else ""
    gone = f", of which Kafka has deleted {number(held.deleted)}" if held.deleted else ""
    kept = f"; Kafka keeps records for {duration(held.kept_ms)}" if held.kept_ms is not None and held.since_ms else ""
    say(f"  {held.state}: {held.table}{since}{waiting}{gone}{kept}{f': {held.why}' if held.why else ''}")
    if held.command:
        say(f"    binlake {held.command}")


def _waiting(held: HeldTable) -> str:
    if held.waiting is None:
        return "how much of the binlog waits is not known: the server was not asked"
    return (
        counted(held.waiting, "record", "waits", "wait")
        if held.unit == "records"
        else f"{size(held.waiting)} of the binlog wait"
    )


def _run(run: Writer | None) -> str:
    if run is None:
        return "not running"
    place = f"process {run.pid} on {run.host}, last sign {duration(run.silent_s * 1000)} ago"
    return f"running ({place})" if run.alive else f"not running; a run died ({place})"


#: Where names are long, the last ones go.
_COLUMNS: tuple[CellColumn[TableStatus], ...] = (
    CellColumn("state", lambda t: t.state, narrow=True, wraps=True),
    CellColumn("rows", lambda t: "not counted" if t.rows is None else number(t.rows), narrow=True),
    CellColumn("quarantined", lambda t: number(t.quarantined), narrow=True),
    CellColumn("age", lambda t: duration(t.age_ms), narrow=True),
    CellColumn("freshness", lambda t: duration(t.freshness_ms), narrow=True),
    CellColumn("last commit", lambda t: t.commit or "-"),
    CellColumn("logs", lambda t: size(t.log_bytes)),
    CellColumn("base", lambda t: size(t.base_bytes)),
    CellColumn("logs/base", lambda t: f"{t.log_bytes / t.base_bytes:.2f}" if t.base_bytes else "-"),
    CellColumn("compaction", lambda t: f"pending {', '.join(t.pending)}" if t.pending else "-", wraps=True),
    CellColumn("lock", lambda t: _who(t.lock) if t.lock is not None else "-", wraps=True),
    CellColumn("at work", lambda t: ", ".join(map(_who, t.writers)) or "-", wraps=True),
)


def _print_tables(statuses: list[TableStatus], conf: str) -> None:
    console, grid = terminal(), Grid()
    columns = fitting(_COLUMNS, [t.name for t in statuses], statuses, console.width)
    fill(grid, columns, [(t.name, t, "yellow" if t.behind else None) for t in statuses], console.width)
    console.print(grid)
    for t in statuses:
        if t.former:
            say(f"{t.name} is at {t.path}: it was {t.former}")
        if t.missing:
            say(t.missing)
        if t.loaded_rows is not None:
            say(loading_remark(t.name, t.loaded_rows, conf))
        for revert in t.reverts:
            say(f"{t.name} reverted: {revert}")
        if t.advice is not None:
            say(f"  {t.name}: {bucket_remark(t.advice, conf, t.name)}")
        if t.resizes:
            say(f"  {t.name}: {ring_remark(t.resizes, t.target_bytes, conf, t.name)}")
        if t.derived is not None:
            say(f"  {t.name}: {_derived(t.derived)}")
        if t.not_carried:
            say(f"  {t.name}: {t.not_carried}")
        if t.finding:
            say(f"  {t.name}: {t.finding}")
        for one in t.undetermined:
            say(f"  {t.name}: not determined: {one}")


def _derived(wide: WideStatus) -> str:
    """How far a wide table is derived."""
    if wide.until is None:
        return f"nothing is derived from {wide.cells} yet"
    until = f"derived from {wide.cells} up to {wide.until}"
    if wide.state == "under way":
        return f"{until}; a further derivation is under way, in portions"
    if wide.state == "declared anew":
        return f"{until} by another declaration; every row will be derived"
    behind = f"{counted(wide.commits, 'commit')}, {duration(wide.lag_ms)} behind" if wide.commits else "up to date"
    return f"{until}; {behind}"


def _who(writer: Writer) -> str:
    name = f"{writer.pid}@{writer.host}" if writer.pid is not None else writer.owner
    return name if writer.alive else f"{name} (dead)"


def _stream_fields(stream: StreamStatus, conf: str) -> dict[str, Any]:
    ledger = stream.ledger
    return {
        "stream": stream.name,
        "run": dataclasses.asdict(stream.run) if stream.run is not None else None,
        "batches": ledger.batch if ledger is not None else None,
        "positions": ledger.positions.to_json() if ledger is not None else {},
        "lag": stream.lag,
        "lags": stream.lags().to_json(),
        "kafka": stream.kafka,
        "behind": [str(source) for source in ledger.behind] if ledger is not None else [],
        "in_hand": [{**dataclasses.asdict(one), "lives": one.lives} for one in stream.in_hand],
        "held": [dataclasses.asdict(held) for held in _held(stream, conf)],
    }
