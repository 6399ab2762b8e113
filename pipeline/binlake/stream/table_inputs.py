"""Sorts the items that the tasks of a batch returned, and makes the input of each table from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from binlake.decode.changes import Control, ControlKind, Quarantined, SourceTable
from binlake.rows.tasks.plan import BatchPlan, Item, TableFailed, TableState, TaskFailed, TaskReport, Written
from binlake.rows.upsert.fanout import truncates_of
from binlake.rows.upsert.parcel import Parcel
from binlake.rows.upsert.prepare import TABLE_REFUSED
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED
from binlake.settings import Settings
from binlake.source.offsets import Ranges
from binlake.stream.learned.accepted import AcceptedRules
from binlake.stream.record_counts import count_records
from binlake.tables.lake import Lake
from binlake.tables.table_commit import TableInput
from hudilake.errors import BinlakeError, ConfigError

_NEW = TableState()


@dataclass
class Outcome:
    """The items that a run of a plan returned, sorted by kind."""

    report: TaskReport = field(default_factory=TaskReport)
    parcels: dict[str, list[Parcel]] = field(default_factory=dict)
    written: dict[str, list[Written]] = field(default_factory=dict)
    failed: list[TableFailed] = field(default_factory=list)

    @staticmethod
    def of(items: Sequence[Item]) -> Outcome:
        """Sort the items of the tasks. Raises the error of a task that could not continue."""
        outcome = Outcome()
        for item in items:
            if isinstance(item, Parcel):
                outcome.parcels.setdefault(item.table, []).append(item)
            elif isinstance(item, Written):
                outcome.written.setdefault(item.table, []).append(item)
            elif isinstance(item, TableFailed):
                outcome.failed.append(item)
            elif isinstance(item, TaskFailed):
                raise item.error
            else:
                outcome.report.add(item)
        return outcome


def take_refused(outcome: Outcome, plan: BatchPlan, accepted: AcceptedRules) -> dict[SourceTable, BinlakeError]:
    """Take the tables out of a batch of which the settings, or the lake, accept no record at all: each with the reason.

    Their records wait until a person has corrected the cause. Records of a table that takes others, in this batch or
    before it, or that a commit has refused, stay among the quarantined. Raises StorageError.
    """
    report = outcome.report
    found: dict[SourceTable, BinlakeError] = {}
    kept: list[Quarantined] = []
    for record in report.quarantined:
        source = record.source
        if record.reason != TABLE_REFUSED or source is None or source in report.tables or _refuses(plan, source):
            kept.append(record)
            continue
        if accepted.has(source):
            kept.append(record)
            continue
        if source not in found:
            found[source] = ConfigError(
                f"every record of the table is refused: {record.detail}",
                do_next="correct the settings or the source; or leave the table out (tables.exclude)",
                table=str(source),
            )
        report.skipped.setdefault(source, set()).add(record.topic)
    report.quarantined = kept
    return found


def _refuses(plan: BatchPlan, source: SourceTable) -> bool:
    """Whether the lake table has refused a commit, so that all its records go to quarantine."""
    return plan.states.get(source, _NEW).refused is not None


def table_inputs(outcome: Outcome, plan: BatchPlan, ranges: Ranges, lake: Lake, settings: Settings) -> list[TableInput]:
    """The input of every table that the batch touched, with the counts of its records. Errors as ``Lake.get``."""
    truncates = truncates_of(outcome.report.controls, settings.tables)
    for control in outcome.report.controls:
        if control.kind is ControlKind.TRUNCATE:
            _report_truncated(outcome.report, control, plan, lake, settings)
    inputs = []
    for source, report in outcome.report.tables.items():
        path = report.target.path
        writer = plan.writers.get(path)
        count_records(report, source, outcome.report)
        inputs.append(
            TableInput(
                report=report,
                ranges=ranges.of_topics(report.topics).until(outcome.report.held.get(source, {})),
                parcels=outcome.parcels.get(path, ()),
                written=outcome.written.get(path, ()),
                context=writer.context if writer else None,
                truncates=NOTHING_TRUNCATED if report.target.kind.appends else truncates.get(source, NOTHING_TRUNCATED),
            )
        )
    return inputs


def _report_truncated(report: TaskReport, control: Control, plan: BatchPlan, lake: Lake, settings: Settings) -> None:
    """Count a TRUNCATE as one record of its table, which may have no rows in this batch: as applied, or as applied
    already."""
    if settings.table_rules(control.source).kind == "append":
        key = (control.source, "truncate of an append table")
        report.filtered[key] = report.filtered.get(key, 0) + 1
        return
    known = report.tables.get(control.source)
    if known is None:
        table = lake.get(settings.table_rules(control.source))
        if table is None:
            key = (control.source, "truncate of a table that is not there")
            report.filtered[key] = report.filtered.get(key, 0) + 1
            return
        known = report.tables[control.source] = table.report(control.source)
    known.topics.add(control.topic)
    state = plan.states.get(control.source, _NEW)
    if control.offset < state.applied(control.topic, control.partition):
        known.counts.already_applied += 1
    else:
        known.counts.read += 1
