"""What ``status`` says of tables that are held back: since when, how much waits, and the command that helps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.decode.changes import SourceTable
from pipeline.position.held_tables import ResyncStep
from pipeline.position.ledger import Ledger
from pipeline.position.table_requests import NO_REQUEST, Requests
from pipeline.source.offsets import Offsets


@dataclass(frozen=True, slots=True)
class HeldTable:
    """A table that is behind, or is being fetched anew.

    Args:
        table: ``database.table``.
        state: ``paused``, ``stopped``, ``behind``, ``resync`` or ``resync failed``.
        since_ms: since when it is paused, when it was last tried, or when the resync was asked for, in ms since the
            epoch; None for a table that is merely behind.
        waiting: the number of records that wait for it.
        deleted: how many of them Kafka has deleted already; None if Kafka was not asked.
        why: why it cannot go on, or how far its resync has come.
        command: the words after ``binlake`` of the command that helps; empty if the stream helps itself.
    """

    table: str
    state: str
    since_ms: int | None
    waiting: int
    deleted: int | None
    why: str
    command: str


_STEPS = {
    ResyncStep.ASKED: "the connector has not answered yet: see that it runs and reads source.debezium.signal_topic",
    ResyncStep.READING: "the connector reads the table",
    ResyncStep.APPLYING: "the connector has read the table; the stream applies its rows",
}


def held_tables(
    ledger: Ledger, requests: Requests, first: Offsets | None, ends: Offsets | None, conf: str
) -> Iterator[HeldTable]:
    """The tables that do not go on with the others.

    Args:
        ledger: of the stream.
        requests: about its tables.
        first: the first offset that Kafka has of each partition; None if Kafka was not asked.
        ends: the ends of the partitions; None if Kafka was not asked.
        conf: the settings file, for the commands.
    """
    for table, start in ledger.behind.items():
        until = (ends if ends is not None else ledger.positions).within(start)
        waiting = until.minus(start).total
        deleted = first.within(start).minus(start).total if first is not None else None
        yield _behind(table, ledger, waiting, deleted, conf)
    for table, resync in ledger.resyncs.items():
        if resync.step is ResyncStep.DONE:
            continue
        asked = requests.get(table, NO_REQUEST).resync
        since_ms = asked.asked_ms if asked is not None else None
        if resync.active:
            yield HeldTable(str(table), "resync", since_ms, 0, None, _STEPS[resync.step], "")
        else:
            yield HeldTable(str(table), "resync failed", since_ms, 0, None, resync.why, _command("resync", conf, table))


def _behind(table: SourceTable, ledger: Ledger, waiting: int, deleted: int | None, conf: str) -> HeldTable:
    name, stop = str(table), ledger.stopped.get(table)
    if table in ledger.paused:
        since_ms, state, why, command = ledger.paused[table], "paused", "", _command("resume", conf, table)
    elif stop is not None:
        why = f"{stop.what}. Next: {stop.do_next}" if stop.do_next else stop.what
        since_ms, state, command = stop.tried_ms, "stopped", _command("resume", conf, table)
    else:
        return HeldTable(name, "behind", None, waiting, deleted, "", "")
    if deleted:
        command = _command("resync", conf, table)
    return HeldTable(name, state, since_ms, waiting, deleted, why, command)


def _command(word: str, conf: str, table: SourceTable) -> str:
    return f"table {word} {conf} {table}"
