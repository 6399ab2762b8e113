"""Sorts the items that the tasks of a batch returned, and makes the input of each table from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from binlake.decode.changes import Control, ControlKind, QuarantinedRecord, SourceTable
from binlake.rows.tasks.plan import BatchPlan, Item, TableFailure, TableState, TaskFailure, TaskReport, WrittenFile
from binlake.rows.upsert.fanout import truncates_of
from binlake.rows.upsert.parcel import Parcel
from binlake.rows.upsert.prepare import TABLE_REFUSED
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED, Truncates
from binlake.settings import Settings
from binlake.source.offsets import NO_RANGES, Ranges
from binlake.stream.batches.record_counts import count_records
from binlake.tables.lake import Lake
from binlake.tables.table_commit import TableInput
from hudilake.errors import ConfigError, LakeError
from hudilake.storage import Storage, StorageNotFoundError

_NEW = TableState()


@dataclass
class Outcome:
    """The items that a run of a plan returned, sorted by kind."""

    report: TaskReport = field(default_factory=TaskReport)
    parcels: dict[str, list[Parcel]] = field(default_factory=dict)
    written: dict[str, list[WrittenFile]] = field(default_factory=dict)
    failed: list[TableFailure] = field(default_factory=list)

    @staticmethod
    def of(items: Sequence[Item]) -> Outcome:
        """Sort the items of the tasks. Raises the error of a task that could not continue."""
        outcome = Outcome()
        for item in items:
            if isinstance(item, Parcel):
                outcome.parcels.setdefault(item.table, []).append(item)
            elif isinstance(item, WrittenFile):
                outcome.written.setdefault(item.table, []).append(item)
            elif isinstance(item, TableFailure):
                outcome.failed.append(item)
            elif isinstance(item, TaskFailure):
                raise item.error
            else:
                outcome.report.add(item)
        return outcome


def take_refused(outcome: Outcome, plan: BatchPlan, accepted: AcceptedRules) -> dict[SourceTable, LakeError]:
    """Take the tables out of a batch of which the settings, or the lake, accept no record at all: each with the reason.

    Their records wait until a person has corrected the cause. Records of a table that takes others, in this batch or
    before it, or that a commit has refused, stay among the quarantined. Raises StorageError.
    """
    report = outcome.report
    refused: dict[SourceTable, LakeError] = {}
    kept: list[QuarantinedRecord] = []
    for record in report.quarantined:
        source = record.source
        if record.reason != TABLE_REFUSED or source is None or source in report.tables or _refuses(plan, source):
            kept.append(record)
            continue
        if accepted.has(source):
            kept.append(record)
            continue
        if source not in refused:
            refused[source] = ConfigError(
                f"every record of the table is refused: {record.detail}",
                do_next="correct the settings or the source; or leave the table out (tables.exclude)",
                table=str(source),
            )
        report.skipped.setdefault(source, set()).add(record.topic)
    report.quarantined = kept
    return refused


def _refuses(plan: BatchPlan, source: SourceTable) -> bool:
    """Whether the lake table has refused a commit, so that all its records go to quarantine."""
    return plan.states.get(source, _NEW).refused is not None


def table_inputs(outcome: Outcome, plan: BatchPlan, ranges: Ranges, lake: Lake, settings: Settings) -> list[TableInput]:
    """The input of every table that the batch touched, with the counts of its records. Errors as ``Lake.get``."""
    truncates = truncates_of(outcome.report.controls, settings.tables)
    each: dict[SourceTable, list[Truncates]] = {}
    for control in outcome.report.controls:
        removes = control.source in truncates
        if control.kind is ControlKind.TRUNCATE and _counts_truncate(
            outcome.report, control, plan, lake, settings, removes=removes
        ):
            each.setdefault(control.source, []).append(truncates_of([control], settings.tables)[control.source])
    inputs = []
    count_records(outcome.report)
    by_topic = ranges.by_topic()
    for source, report in outcome.report.tables.items():
        path = report.target.path
        writer = plan.writers.get(path)
        topic, *others = report.topics or [""]
        mine = ranges.of_topics(report.topics) if others else by_topic.get(topic, NO_RANGES)
        inputs.append(
            TableInput(
                report=report,
                ranges=mine.until(outcome.report.held.get(source, {})),
                parcels=outcome.parcels.get(path, ()),
                written=outcome.written.get(path, ()),
                context=writer.context if writer else None,
                truncates=truncates.get(source, NOTHING_TRUNCATED),
                each_truncate=each.get(source, ()),
                left_out=plan.states.get(source, _NEW).delivered,
            )
        )
    return inputs


def _counts_truncate(
    report: TaskReport, control: Control, plan: BatchPlan, lake: Lake, settings: Settings, *, removes: bool
) -> bool:
    """Count a TRUNCATE as one record of its table, which may have no rows in this batch; whether the table reads it now
    and no earlier commit has. ``removes``: whether the table is none of those whose rows are only added."""
    if not removes:
        key = (control.source, "truncate of an append table")
        report.filtered[key] = report.filtered.get(key, 0) + 1
        return False
    known = report.tables.get(control.source)
    if known is None:
        table = lake.get(settings.table_rules(control.source))
        if table is None:
            key = (control.source, "truncate of a table that is not there")
            report.filtered[key] = report.filtered.get(key, 0) + 1
            return False
        known = report.tables[control.source] = table.report(control.source)
    known.topics.add(control.topic)
    state = plan.states.get(control.source, _NEW)
    if control.offset < state.applied(control.topic, control.partition):
        known.counts.already_applied += 1
        return False
    known.counts.read += 1
    return True


_VERSION = 1


class AcceptedRules:
    """The tables of a stream that have taken records, each with a digest of its rules at that time.

    Args:
        settings: of the stream.
        root: of the lake.
    """

    def __init__(self, settings: Settings, root: Storage) -> None:
        self._settings, self._root = settings, root
        self._path = f".binlake/{settings.name}/accepted.json"
        self._taken: set[SourceTable] = set()

    def has(self, source: SourceTable) -> bool:
        """Whether a lake table has taken records under its present rules. Raises StorageError."""
        return source in self._taken or self._stored.get(source) == self._digest(source)

    def keep(self, sources: Iterable[SourceTable]) -> None:
        """Note the tables that have taken records of a batch. Raises StorageError."""
        new = {source: self._digest(source) for source in sources if source not in self._taken}
        if any(self._stored.get(source) != digest for source, digest in new.items()):
            self._stored.update(new)
            tables = sorted([one.database, one.table, digest] for one, digest in self._stored.items())
            document = {"version": _VERSION, "tables": tables}
            self._root.write(self._path, json.dumps(document, ensure_ascii=False).encode())
        self._taken.update(new)

    def _digest(self, source: SourceTable) -> str:
        """Of the rules that decide which records can be taken."""
        rules = self._settings.table_rules(source)
        groups = [(one.name, one.key, one.columns, sorted(one.others)) for one in rules.groups]
        shaping = (rules.key, rules.partition, rules.columns, rules.merge, groups, rules.kind, rules.index)
        return hashlib.sha256(repr((shaping, self._settings.tables.routes)).encode()).hexdigest()

    @cached_property
    def _stored(self) -> dict[SourceTable, str]:
        """None if there is no such file, or it cannot be read: the tables show again that they take records."""
        try:
            document = json.loads(self._root.read(self._path))
            if document["version"] != _VERSION:
                return {}
            return {SourceTable(database, table): digest for database, table, digest in document["tables"]}
        except (StorageNotFoundError, ValueError, KeyError, TypeError):
            return {}
