"""Portions of a dump carried out: batches as the stream's, but for where records come from and what commits say.

The commits are of another stream, ``<name>.replay``: they cover no offsets and move no position, so neither the stream
nor its recovery sees them. Rows are decided by the order of their events, whoever wrote first.
"""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from pipeline.clock import now_ms
from pipeline.decode.changes import SourceTable
from pipeline.errors import BinlakeError, TransientError
from pipeline.hudi.actions.commit import OvertakenError
from pipeline.lake.lake import Lake, locking
from pipeline.lake.lake_table import LakeTable
from pipeline.lake.table_services import TableServices
from pipeline.monitoring.progress import ProgressEvent
from pipeline.replay.coverage import Portion
from pipeline.replay.dump_policy import DumpPolicy
from pipeline.settings import Settings, TableRules
from pipeline.source.dump_read import record_bytes
from pipeline.source.offsets import OffsetRange, Ranges
from pipeline.storage import Storage
from pipeline.stream.engine import Engine
from pipeline.stream.policy import Batch
from pipeline.stream.schemas import SchemaRegistry
from pipeline.stream.sequence import Applied, BatchSequence
from pipeline.upsert.target import Target

#: What stands before a file's path where a batch has the topic of an offset range.
FILE = "dump:"
#: Bytes of a record, about: a batch is measured in records.
_RECORD_BYTES = 600
_ATTEMPTS = 3


def replay_stream(name: str) -> str:
    """The stream that the commits of a replay name. No stream of the settings can be called so."""
    return f"{name}.replay"


def replaying(settings: Settings) -> Settings:
    """The settings under which a replay writes: a stream of another name, with a state below that of the stream; the
    same tables, the same quarantine."""
    quarantine = settings.quarantine.model_copy(update={"path": settings.quarantine_path})
    state = settings.state.model_copy(update={"uri": f"{settings.state_uri}/replay_dumps"})
    return settings.model_copy(update={"name": replay_stream(settings.name), "quarantine": quarantine, "state": state})


class ReplayLake(Lake):
    """The lake's tables: compacted between two commits, since a replay ends; first rows may go to base files."""

    def __init__(self, root: Storage, settings: Settings) -> None:
        super().__init__(root, locking(settings.locking, f"stream {settings.name}", one_run=True))
        self._base_from_rows = settings.dump.base_files_from_rows

    def get(self, rules: TableRules) -> LakeTable | None:
        """See Lake."""
        table = super().get(_inline(rules))
        if table is not None:
            table.base_from_rows = self._base_from_rows
        return table

    def get_or_create(self, rules: TableRules, target: Target, columns: pa.Schema) -> LakeTable:
        """See Lake."""
        table = super().get_or_create(_inline(rules), target, columns)
        table.base_from_rows = self._base_from_rows
        return table


def _inline(rules: TableRules) -> TableRules:
    rule = rules.compaction
    if rule is None or rule.mode != "async":
        return rules
    return dataclasses.replace(rules, compaction=rule.model_copy(update={"mode": "inline"}))


class ReplayRunner:
    """Carries out the portions of one replay.

    Args:
        settings: as ``replaying`` gives them.
        lake: the tables.
        state: of the replays.
        registry: what is known of schemas.
        services: compaction, cleaning and archival of the tables.
        uri: the dump's root.
        step: the hours of one of its directories.
    """

    def __init__(
        self,
        settings: Settings,
        lake: ReplayLake,
        state: Storage,
        registry: SchemaRegistry,
        services: TableServices,
        uri: str,
        step: int,
    ) -> None:
        self._policy = DumpPolicy(settings, lake, state, uri, step)
        self._sequence = BatchSequence(settings, lake, registry, services, self._policy)

    def close(self) -> None:
        """Stop the threads."""
        self._sequence.close()

    def replay(self, portion: Portion, number: int, engine: Engine) -> list[ProgressEvent]:
        """Apply a portion to every table it has rows for; what was done, one event for each attempt.

        A table whose commit was overtaken is tried again; the records of one that refuses them go to quarantine. Raises
        BinlakeError: what is committed stays, and the portion is taken up again by the next replay.
        """
        self._policy.begin(portion, number)
        records = {f"{FILE}{f.path}": max(1, record_bytes(f) // _RECORD_BYTES) for f in portion.files}
        ranges = Ranges(OffsetRange(name, 0, 0, count) for name, count in records.items())
        unmeasured = Ranges(OffsetRange(name, 0, 0, 0) for name in records)  # not shuffled: the driver can redo it
        try:
            first = self._attempt(ranges, number, engine, None)
        except OvertakenError:  # of every table: no other commit stands
            first = self._attempt(unmeasured, number, engine, None)
        events = [first.event]
        for source, error in first.failed.items():
            events += self._again(unmeasured, number, engine, source, error)
        return events

    def _again(
        self, ranges: Ranges, number: int, engine: Engine, source: SourceTable, error: BinlakeError
    ) -> list[ProgressEvent]:
        """A portion once more for a table that failed; the events of the attempts. Raises the error that stays."""
        events: list[ProgressEvent] = []
        for _ in range(_ATTEMPTS):
            if not (isinstance(error, TransientError) or source in self._sequence.refused):
                break
            applied = self._attempt(ranges, number, engine, source)
            events.append(applied.event)
            if not applied.failed:
                return events
            error = applied.failed[source]
        raise error

    def _attempt(self, ranges: Ranges, number: int, engine: Engine, only: SourceTable | None) -> Applied:
        return self._sequence.apply(Batch(number, ranges, now_ms(), only=only), engine)
