"""What ``status`` says of tables that are held back: since when, how much waits, and the command that helps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from binlake.decode.changes import SourceTable
from binlake.position.held_tables import Resync, ResyncStep
from binlake.position.ledger import Ledger
from binlake.position.table_requests import NO_REQUEST, Requests, ResyncRequest
from binlake.source.binlog.topic import is_binlog
from binlake.source.offsets import Offsets


@dataclass(frozen=True, slots=True)
class KafkaFacts:
    """What Kafka says of the topics: their ``ends``; and of the topics that tables which are behind still read, the
    ``first`` offsets that are there, and how long each topic keeps records (``retention_ms``). Of a binlog, the
    ``bytes_behind`` the place of each table that is behind."""

    ends: Offsets
    first: Offsets
    retention_ms: Mapping[str, int]
    bytes_behind: Mapping[SourceTable, int] = field(default_factory=dict)

    def behind(self, table: SourceTable, start: Offsets) -> int | None:
        """The records, of a binlog the bytes, from the place of a table that is behind; None if it is not known."""
        if any(map(is_binlog, start)):  # differences of its offsets count nothing
            return self.bytes_behind.get(table)
        return self.ends.within(start).minus(start).total


@dataclass(frozen=True, slots=True)
class HeldTable:
    """A table that is behind, or is being fetched anew.

    Args:
        table: ``database.table``.
        state: ``paused``, ``stopped``, ``behind``, ``resync`` or ``resync failed``.
        since_ms: since when it is paused, when it was last tried, or when the resync was asked for, in ms since the
            epoch; None for a table that is merely behind.
        waiting: the number of records that wait for it; of a binlog, of bytes. None if it is not known.
        unit: ``records`` or ``bytes``.
        deleted: how many of them Kafka has deleted already; None if Kafka was not asked, and for a binlog.
        kept_ms: how long Kafka keeps records for the table, in ms; None if it is not known, or for ever.
        why: why it cannot go on, or how far its resync has come.
        command: the words after ``binlake`` of the command that helps; empty if the stream helps itself.
    """

    table: str
    state: str
    since_ms: int | None
    waiting: int | None
    unit: str
    deleted: int | None
    kept_ms: int | None
    why: str
    command: str


_STEPS = {
    ResyncStep.ASKED: "the stream has not signalled the connector yet: see that it runs",
    ResyncStep.SIGNALLED: "the connector has not answered yet: see that it runs and reads its signal topic",
    ResyncStep.READING: "the connector reads the table",
    ResyncStep.APPLYING: "the connector has read the table; the stream applies its rows",
}


def held_tables(ledger: Ledger, requests: Requests, kafka: KafkaFacts | None, conf: str) -> Iterator[HeldTable]:
    """The tables that do not go on with the others.

    Args:
        ledger: of the stream.
        requests: about its tables.
        kafka: None if Kafka was not asked, or gave no answer.
        conf: the settings file, for the commands.
    """
    for table in ledger.behind:
        yield _behind(table, ledger, kafka, conf)
    new = {table: Resync(r.resync.id) for table, r in requests.items() if r.resync and _is_new(ledger, table, r.resync)}
    for table, resync in {**ledger.resyncs, **new}.items():
        if resync.step is ResyncStep.DONE:
            continue
        asked = requests.get(table, NO_REQUEST).resync
        since_ms = asked.asked_ms if asked is not None else None
        state, why, command = "resync failed", resync.why, _command("resync", conf, table)
        if resync.active:
            state, why, command = "resync", _STEPS[resync.step], ""
        yield HeldTable(str(table), state, since_ms, 0, "records", None, None, why, command)


def _is_new(ledger: Ledger, table: SourceTable, request: ResyncRequest) -> bool:
    """Whether the stream has not seen a request yet."""
    known = ledger.resyncs.get(table)
    return known is None or known.id != request.id


def _behind(table: SourceTable, ledger: Ledger, kafka: KafkaFacts | None, conf: str) -> HeldTable:
    start, stop = ledger.behind[table], ledger.stopped.get(table)
    in_bytes = any(map(is_binlog, start))
    gone = kafka.first.within(start).minus(start).total if kafka is not None else None
    waiting, unit, deleted = None, "bytes" if in_bytes else "records", None if in_bytes else gone
    if kafka is not None:
        waiting = kafka.behind(table, start)
    elif not in_bytes:
        waiting = ledger.positions.within(start).minus(start).total
    kept = [kafka.retention_ms[topic] for topic in start if topic in kafka.retention_ms] if kafka is not None else []
    state, since_ms, why, command = "behind", None, "", ""
    if table in ledger.paused:
        state, since_ms, command = "paused", ledger.paused[table], _command("resume", conf, table)
    elif stop is not None:
        why = f"{stop.what}. Next: {stop.do_next}" if stop.do_next else stop.what
        state, since_ms, command = "stopped", stop.tried_ms, _command("resume", conf, table)
    if gone and command:
        command = _command("resync", conf, table)
    return HeldTable(str(table), state, since_ms, waiting, unit, deleted, min(kept, default=None), why, command)


def _command(word: str, conf: str, table: SourceTable) -> str:
    return f"table {word} {conf} {table}"
