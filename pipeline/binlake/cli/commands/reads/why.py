"""``binlake why``: every version of one row, where it comes from, and why it won."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.table import Table as Grid

from binlake.cli.commands.reads.query import text
from binlake.cli.options import LakeConf, Table
from binlake.cli.table_options import chosen_one
from binlake.cli.text import moment, say, say_json, terminal
from binlake.load.replay.quarantine_records import QuarantineEntry
from binlake.proof.history.commits import CommitLog
from binlake.proof.history.events import KafkaLook
from binlake.proof.history.history import Line, LineKind, RowHistory, place_text
from binlake.proof.history.keys import RowKey, row_key
from binlake.proof.history.opened import change_reader
from binlake.proof.history.quarantined import quarantined_records
from binlake.proof.history.verdicts import Fate
from binlake.proof.history.why import row_histories
from binlake.rows.upsert.target import ROW_FIELD, key_columns
from binlake.settings import Settings, TableRules
from binlake.source.offsets import describe
from binlake.source.source_log import source_log
from binlake.tables.catalog import CatalogTable
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from hudilake.clock import parse_instant
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable

Key = Annotated[str, typer.Argument(help="The key's value, or name=value,name=value, or a JSON object.", metavar="KEY")]
AskKafka = Annotated[
    bool,
    typer.Option(
        "--kafka/--no-kafka",
        help="Look up GTIDs, offsets and superseded events in Kafka, or in the binlog that the stream reads.",
    ),
]
KafkaMost = Annotated[int, typer.Option("--kafka-records", help="The most records to read from Kafka.", min=1)]


def why(
    conf: LakeConf,
    table: Table,
    key: Key,
    partition: Annotated[list[str] | None, typer.Option("--partition", help="Look into this partition only.")] = None,
    ask_kafka: AskKafka = False,
    kafka_records: KafkaMost = 1_000_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON line for every version and event.")] = False,
) -> None:
    """Print every version of a row, where it comes from, and why it won or lost. Changes nothing."""
    settings = Settings.load(conf)
    place = chosen_one(settings, table)
    opened = HudiTable.open(place.storage)
    row, log = row_key(key, opened), CommitLog.of(opened, settings.name)
    look = _look(settings, place, kafka_records) if ask_kafka else None
    histories = row_histories(opened, row, log, partition, look)
    held, unknown = _quarantined(settings, place, row)
    if as_json:
        _write(place, histories, held, unknown)
        return
    if row.lookup is None:
        say(f"{place.name} has no key: the rows were searched by their content in all file groups")
    for history in histories:
        _print(place, history)
    if not histories:
        say(f"{place.name}: no version of such a row is stored, and no commit wrote to its file group")
    if not key_columns(opened.config) and all(history.fate is None for history in histories):
        say(
            f"{place.name} has no key: name a row by columns of it, {opened.schema.names[0]}=VALUE,..., or by its "
            f"own name, which binlake query shows: SELECT {ROW_FIELD}, ..."
        )
    if histories and not ask_kafka:
        home = "Kafka" if settings.source.mysql is None else "the binlog"
        say(f"GTIDs, offsets and superseded events are not stored in the lake; --kafka looks them up in {home}")
    for record in held:
        say(f"quarantined: {record.name}, {record.reason}: {record.detail}{_replayed(record)}")
    if unknown:
        say(f"{unknown} quarantined records of the table cannot be matched to a key; see binlake quarantine show")


def _look(settings: Settings, place: CatalogTable, most: int) -> KafkaLook:
    lake = Lake(open_storage(settings.lake.uri, settings.lake.storage_options()))
    tables = {place.source: LakeTable.look(place.storage, place.rules)}
    return KafkaLook(source_log(settings), change_reader(settings, lake, tables), place.source, most)


def _quarantined(settings: Settings, place: CatalogTable, row: RowKey) -> tuple[list[QuarantineEntry], int]:
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    return quarantined_records(settings, root, place.name, row)


def _replayed(record: QuarantineEntry) -> str:
    return f"; replayed {moment(record.replayed_ms)}" if record.replayed_ms is not None else ""


# -- for people -------------------------------------------------------------------------------------------------------


def _print(place: CatalogTable, history: RowHistory) -> None:
    where = f"partition {history.path}, " if history.path else ""
    now = history.fate.value if history.fate is not None else "not stored"
    say(f"{place.name}, key {history.key}: {now} ({where}file group {history.file_group})")
    grid = Grid("source position", "operation", "commit", "by", "in", "Kafka", "GTID", "verdict", "values")
    for line in history.lines:
        grid.add_row(*_cells(line, place.rules), style=None if line.kind is LineKind.VERSION else "dim")
    terminal().print(grid, markup=False)
    for path in dict.fromkeys(path for line in history.lines for path in line.files):
        say(f"  {_kind_of(path)} file {path}")
    for note in history.notes:
        say(f"  not known: {note}")


def _cells(line: Line, rules: TableRules) -> tuple[str, ...]:
    commit, record = line.commit, line.record
    kafka = gtid = ""
    if record is not None:
        kafka = f"{record.topic}/{record.partition}:{record.offset}"
        gtid = record.trace.gtid or record.trace.transaction or ""
    elif commit is not None and commit.ranges:
        kafka = f"one of {describe(commit.ranges)}"
    archived = " (archived)" if commit is not None and commit.archived else ""
    decided = line.fate.value if line.fate in (Fate.LIVE, Fate.DELETED) else None
    kind = decided or (None if line.kind is LineKind.VERSION else line.kind.value)
    return (
        place_text(line.order, rules),
        line.op,
        f"{commit.instant}{archived}" if commit is not None else "",
        commit.kind.value if commit is not None else "",
        " and ".join(dict.fromkeys(map(_kind_of, line.files))),
        kafka,
        gtid,
        f"{kind}: {line.why}" if kind is not None else line.why,
        line.statement or _values(line),
    )


def _kind_of(path: str) -> str:
    return "log" if path.rpartition("/")[2].startswith(".") else "base"


def _values(line: Line) -> str:
    values: Mapping[str, Any] = line.values or {}
    names = line.changed or tuple(values)
    return ", ".join(f"{n}={'null' if values[n] is None else text(values[n])}" for n in names)


# -- for programs -----------------------------------------------------------------------------------------------------


def _write(place: CatalogTable, histories: list[RowHistory], held: list[QuarantineEntry], unknown: int) -> None:
    table = place.name
    for history in histories:
        head = {"table": table, "key": history.key, "partition": history.path}
        for line in history.lines:
            _dump({**head, **_fields(line, place.rules)})
        fate = history.fate.value if history.fate is not None else None
        _dump({**head, "kind": "now", "fate": fate, "file_group": history.file_group, "not_known": history.notes})
    for record in held:
        fields = {"kind": LineKind.QUARANTINED.value, "found_in": "quarantine", "reason": record.reason}
        kafka = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
        _dump({"table": table, **fields, "why": record.detail, "kafka": kafka, "replayed_to": record.replayed_to})
    if unknown:
        _dump({"table": table, "kind": "not matched", "found_in": "quarantine", "records": unknown})


def _fields(line: Line, rules: TableRules) -> dict[str, Any]:
    commit, record = line.commit, line.record
    fields: dict[str, Any] = {
        "kind": line.kind.value,
        "found_in": line.found_in,
        "operation": line.op or None,
        "order": line.order,
        "source_position": place_text(line.order, rules) if line.order is not None else None,
        "fate": line.fate.value if line.fate is not None else None,
        "why": line.why,
        "values": line.values,
        "changed": line.changed or None,
        "files": line.files or None,
        "statement": line.statement or None,
    }
    if commit is not None:
        fields |= {"instant": commit.instant, "completed_ms": parse_instant(commit.completed)}
        fields |= {"by": commit.kind.value, "archived": commit.archived, "offsets": commit.ranges.to_json() or None}
    if record is not None:
        fields["kafka"] = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
        fields |= {"gtid": record.trace.gtid, "transaction": record.trace.transaction, "binlog": record.trace.place}
        fields["source_ms"] = record.source_ms or None
    return {name: value for name, value in fields.items() if value is not None}


def _dump(fields: Mapping[str, Any]) -> None:
    say_json(fields, text)
