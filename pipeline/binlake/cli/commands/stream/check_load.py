"""What ``binlake check`` says of first loads: those that are not at their end, and those that rows wait for.

A topic has the rows of a table whole only if it begins with them: with a snapshot of the connector, or with the table
itself. The binlog from some place on never has. What is missing then comes by ``binlake load``, or by a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from binlake.decode.changes import RawRecords, SourceTable
from binlake.load.first.table_plan import LoadPlan
from binlake.position.record_reader import RecordReader
from binlake.rows.upsert.fanout import destination
from binlake.settings import Settings
from binlake.source.binlog.definitions import OPAQUE_TYPES, unreadable_types
from binlake.source.database.connection import connect
from binlake.source.database.source_table import OWN_DATABASES, describe, quoted, tables_of, tables_with
from binlake.tables.catalog import catalog_tables
from hudilake.errors import BadInputError, ConfigError, UnsupportedError
from hudilake.storage import Storage
from hudilake.table.directory import BrokenTable
from hudilake.table.table import HudiTable

_BEGUN = {"u": "a change of a row", "d": "a delete of a row", "c": "a new row"}
_NAMED = 5


@dataclass(frozen=True)
class LoadFinding:
    """A table whose rows are not all there. ``error``: why the stream would not take it in; None where it would."""

    name: str
    detail: str
    error: ConfigError | None = None


def unfinished(settings: Settings, lake: Storage) -> Iterator[LoadFinding]:
    """The tables of the lake whose first load is not at its end. Raises CorruptDataError, StorageError."""
    for place in catalog_tables(settings, lake):
        if isinstance(place, BrokenTable):
            continue
        load = RecordReader.newest_of(HudiTable.open(place.storage)).unfinished_load
        if load is not None:
            error = load.interrupted(place.storage.uri)
            yield LoadFinding(f"first load of {place.name}", error.what, error)


def late_topics(
    settings: Settings, lake: Storage, samples: Mapping[str, RawRecords], firsts: Mapping[str, int]
) -> Iterator[LoadFinding]:
    """The tables that the lake does not have, and whose topics do not begin with all of their rows.

    Args:
        settings: of the stream.
        lake: its root.
        samples: the first records of each topic.
        firsts: topic -> the number of records that Kafka has deleted before the first one.
    """
    for topic, records in sorted(samples.items()):
        source = SourceTable.named(*topic.rsplit(".", 2)[-2:]) if topic.count(".") > 1 else None
        if source is None or not settings.selects(source) or _is_there(settings, lake, source):
            continue
        if firsts.get(topic):
            why = f"Kafka has deleted the first {firsts[topic]:,} records of {topic}"
        elif (op := first_op(records)) in ("u", "d") or (op == "c" and settings.source.database.host is not None):
            why = f"{topic} begins with {_BEGUN[op]}, and not with a snapshot"
        else:
            continue
        yield LoadFinding(
            f"first load of {source}",
            f"{why}: rows that the table had before are not in it. binlake load CONF {source} fetches them, before the "
            "first run; so does a snapshot of the connector",
        )


def first_op(records: RawRecords) -> str:
    """``op`` of the first record, if it is an event of Debezium in JSON, else ""; r if any is a snapshot's."""
    ops = [op for value in records.values if value is not None and (op := _op(value))]
    return "r" if "r" in ops else ops[0] if ops and ops[0] in _BEGUN else ""


def unread_rows(settings: Settings, lake: Storage) -> Iterator[LoadFinding]:
    """The tables with rows of a server whose binlog the stream reads, of which the lake has none: the binlog from the
    stream's place on does not have them. Those that a load refuses, each with the reason; the others together. Also
    tables whose changes the stream would not read. Raises TransientError, ConfigError."""
    lacking: list[str] = []
    with connect(settings.source.database.model_copy(update={"replica": None})) as connection:
        opaque = tables_with(connection, OPAQUE_TYPES)
        for source in tables_of(connection):
            if source.database.lower() in OWN_DATABASES or not settings.selects(source):
                continue
            unread = unreadable_types(describe(connection, source).columns) if source in opaque else None
            if unread is not None:
                yield LoadFinding(f"changes of {source}", f"{unread.what}. Next: {unread.do_next}")
                continue
            if _is_there(settings, lake, source):
                continue
            if not connection.rows(f"SELECT 1 FROM {quoted(source.database)}.{quoted(source.table)} LIMIT 1"):  # noqa: S608 - quoted
                continue
            try:
                LoadPlan.of(settings, describe(connection, source))
            except (BadInputError, ConfigError, UnsupportedError) as error:
                detail = f"binlake load will refuse it: {error.what}. Next: {error.do_next}"
                yield LoadFinding(f"first load of {source}", detail)
            else:
                lacking.append(str(source))
    if lacking:
        more = f" and {len(lacking) - _NAMED} others" if len(lacking) > _NAMED else ""
        yield LoadFinding(
            "first load",
            f"tables with rows that the lake does not have: {', '.join(lacking[:_NAMED])}{more}. The stream brings "
            "what changes from its place on; binlake load CONF fetches the rows that are there, before the first run",
        )


def _is_there(settings: Settings, lake: Storage, source: SourceTable) -> bool:
    return HudiTable.exists(lake.sub(settings.table_rules(destination(source, settings.tables)).path))


def _op(value: bytes) -> str:
    try:
        document = msgspec.json.decode(value)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return ""
    event = document.get("payload", document) if isinstance(document, dict) else None
    op = event.get("op") if isinstance(event, dict) and isinstance(event.get("source"), dict) else None
    return op if isinstance(op, str) else ""
