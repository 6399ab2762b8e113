"""Decodes, prepares, writes and commits quarantined records of one table, under another stream's name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from binlake.decode.changes import ControlKind, QuarantinedRecord, SourceTable
from binlake.decode.options import DecodeOptions
from binlake.decode.quarantine import Reason
from binlake.load.replay.quarantine_records import QuarantineEntry, chunks
from binlake.load.replay.quarantine_table import replaying_rules
from binlake.position.commit_record import CommitNotes
from binlake.position.ledger import Ledger
from binlake.rows.tasks.decode_and_route import decode_records
from binlake.rows.tasks.plan import BatchPlan, TableState
from binlake.rows.upsert.fanout import truncates_of
from binlake.rows.upsert.prepare import TABLE_REFUSED
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED
from binlake.schema.apply.keeper import DdlKeeper
from binlake.settings import Settings
from binlake.source.offsets import NO_RANGES
from binlake.stream.batches.table_inputs import Outcome
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from binlake.tables.services.table_services import TableServices
from binlake.tables.table_commit import TableInput, write_and_commit
from hudilake.errors import UnsupportedError


@dataclass(frozen=True)
class WrittenRecords:
    """The result of a write: the records ``taken`` by the commit of ``instant`` (None: no row was left), and the
    records that ``failed`` again, by (topic, partition, offset)."""

    taken: Sequence[QuarantineEntry]
    failed: Mapping[tuple[str, int, int], QuarantinedRecord]
    instant: str | None


class RecordWriter:
    """Writes records into their tables.

    Args:
        settings: of the stream that quarantined them.
        stream: the stream name in the commits.
        lake: the tables.
        registry: the known schemas.
        ddl: the statements; none is carried out.
        ledger: what the stream has noted.
        services: compaction, cleaning and archival of the tables.
    """

    def __init__(
        self,
        settings: Settings,
        stream: str,
        lake: Lake,
        registry: SchemaRegistry,
        ddl: DdlKeeper,
        ledger: Ledger,
        services: TableServices,
    ) -> None:
        self._settings, self._stream, self._lake = settings, stream, lake
        self._registry, self._ddl, self._ledger, self._services = registry, ddl, ledger, services

    def decoded(
        self,
        source: SourceTable,
        records: Sequence[QuarantineEntry],
        table: LakeTable | None,
        before_of: frozenset[SourceTable] = frozenset(),
    ) -> Outcome:
        """Records of one table, decoded and routed as in tasks. The plan holds no positions, so no record is skipped.

        ``before_of``: the source tables whose before images are decoded.
        """
        settings, topics = self._settings, {held.topic for held in records}
        state = TableState()
        if table is not None:
            state = TableState(
                truncates=table.truncates, columns=table.hudi.schema.names, bucketing=table.rows.own_bucketing
            )
        ddl = self._ddl.consult(self._ledger.tables, topics)
        plan = BatchPlan(
            decoding=self._doubting(ddl.decoding(self._registry.options(before_of)), records),
            schemas=self._registry.schemas_for(topics),
            tables=settings.tables,
            states={source: state},
            kafka={},
            lake_uri=settings.lake.uri,
            lake_options={},
            only=source,
            max_quarantined=len(records),
            ddl=ddl,
        )
        return Outcome.of(list(decode_records(plan, chunks(records))))

    def _doubting(self, options: DecodeOptions, records: Sequence[QuarantineEntry]) -> DecodeOptions:
        """The options for records that may be here since they do not say all: newer messages do not tell what they say,
        the settings alone do."""
        nulls = options.maxwell_nulls
        if nulls is None and (
            self._ledger.nulls_unsaid_in or any(held.reason == Reason.MISSING_IMAGE.value for held in records)
        ):
            nulls = False
        return dataclasses.replace(options, doubts_tombstones=True, maxwell_nulls=nulls)

    def write(
        self, source: SourceTable, records: Sequence[QuarantineEntry], table: LakeTable | None, pool: Executor
    ) -> WrittenRecords:
        """Write records of one table, and name them in its commit. Raises LakeError; records that the table refuses
        are returned as failed instead."""
        outcome = self._decoded_whole(source, records, table)
        self._ddl.refuse_unsure(source)
        task = outcome.report
        failed = {(q.topic, q.partition, q.offset): q for q in task.quarantined}
        taken = [held for held in records if held.place not in failed]
        report = task.tables.get(source)
        appends = self._settings.table_rules(source).kind == "append"
        truncates = [c for c in task.controls if c.kind is ControlKind.TRUNCATE and not appends]
        if report is None and truncates and table is not None:
            report = table.report(source)
        if report is None:
            return WrittenRecords(taken, failed, None)
        report.counts.read += len(truncates)
        table_input = TableInput(
            report,
            NO_RANGES,
            outcome.parcels.get(report.target.path, ()),
            truncates=truncates_of(truncates, self._settings.tables).get(source, NOTHING_TRUNCATED),
            each_truncate=[truncates_of([one], self._settings.tables)[source] for one in truncates],
            notes=CommitNotes(replayed={held.name: held.digest for held in taken}),
        )
        try:
            return WrittenRecords(taken, failed, self._commit(source, table_input, pool))
        except UnsupportedError as error:
            refused = {held.place: refused_record(held, source, TABLE_REFUSED, str(error)) for held in taken}
            return WrittenRecords([], failed | refused, None)

    def _decoded_whole(
        self, source: SourceTable, records: Sequence[QuarantineEntry], table: LakeTable | None
    ) -> Outcome:
        """Decodes the records, and once more with their before images if the table needs them."""
        outcome = self.decoded(source, records, table)
        seen = outcome.report.tables.get(source)
        if seen is None or not seen.before_images:
            return outcome
        return self.decoded(source, records, table, frozenset(seen.origins))

    def _commit(self, source: SourceTable, table_input: TableInput, pool: Executor) -> str | None:
        rules, report = replaying_rules(self._settings.table_rules(source)), table_input.report
        table = self._lake.get_or_create(rules, report.target, report.columns)
        table.refresh(self._stream)
        return write_and_commit(table, table_input, self._stream, 0, pool, self._services).instant


def refused_record(held: QuarantineEntry, source: SourceTable, reason: str, detail: str) -> QuarantinedRecord:
    """A record that stays in quarantine, with this reason."""
    fields = {f.name: getattr(held, f.name) for f in dataclasses.fields(QuarantinedRecord) if hasattr(held, f.name)}
    changes = {"timestamp_ms": held.kafka_ms, "reason": reason, "detail": detail, "source": source}
    return QuarantinedRecord(**{**fields, **changes})
