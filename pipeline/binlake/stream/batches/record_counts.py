"""Counts the fates of a batch's records: for the commit, for the quarantine threshold and for progress events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from binlake.decode.changes import SourceTable
from binlake.rows.tasks.plan import TaskReport, TaskTableReport
from binlake.rows.upsert.prepare import UNCOUNTED_REASONS
from binlake.schema.apply.keeper import DdlOutcome
from binlake.settings import QuarantineSettings
from binlake.source.offsets import Ranges
from binlake.stream.monitoring.progress import DdlProgress, TableProgress
from binlake.tables.table_commit import TableOutcome
from hudilake.errors import BadInputError, LakeError

#: The share of bad records is checked only in batches of at least this many records: in a small batch, one bad record
#: would exceed the threshold.
_SHARE_JUDGED_FROM = 100


def check_threshold(rules: QuarantineSettings, report: TaskReport, ranges: Ranges) -> None:
    """Raise BadInputError, before anything is written, if too many records of a batch cannot be applied."""
    bad = report.quarantined_count
    judged = report.records >= _SHARE_JUDGED_FROM
    if bad <= rules.max_records_per_batch and not (judged and bad > rules.max_fraction * report.records):
        return
    counted = [q for q in report.quarantined if q.reason not in UNCOUNTED_REASONS]
    first = counted[0]
    reasons = sorted({q.reason for q in counted})
    raise BadInputError(
        f"{bad} of {report.records} records of the batch cannot be applied ({', '.join(reasons)}); "
        f"the first: {first.detail if rules.seal is None else first.reason}",
        do_next="correct the settings, or raise quarantine.max_records_per_batch and max_fraction to go on",
        topic=first.topic,
        partition=first.partition,
        offset=first.offset,
        offsets=", ".join(f"{r.topic}/{r.partition}:{r.start}..{r.end}" for r in ranges[:4]),
    )


def table_progress(
    report: TaskTableReport,
    outcome: TableOutcome,
    trigger_ms: int,
    error: LakeError | None,
    ranges: Ranges,
) -> TableProgress:
    """The progress of a table's part of the batch."""
    visible, counts, instant = outcome.visible_ms, outcome.counts, outcome.instant
    return TableProgress(
        table=str(report.target.source),
        events_read=counts.read + counts.already_applied,
        applied=counts.applied if error is None else 0,
        superseded=counts.superseded,
        filtered=counts.filtered,
        quarantined=counts.quarantined,
        already_applied=counts.already_applied,
        commit_instant=instant,
        commit_latency_ms=float(visible - trigger_ms) if instant else None,
        freshness_oldest_ms=visible - report.oldest_ms if instant and report.oldest_ms else None,
        freshness_newest_ms=visible - report.newest_ms if instant and report.newest_ms else None,
        bytes_written=outcome.bytes_written,
        error=str(error) if error is not None else None,
        compaction_instant=outcome.services.compacted,
        clustering_instant=outcome.services.clustered,
        warning="; ".join(filter(None, (outcome.finding, *report.doubts(), outcome.services.warning))) or None,
        offsets=ranges.to_json(),
    )


def ddl_progress(notes: Sequence[DdlOutcome]) -> tuple[DdlProgress, ...]:
    """The outcomes of DDL, one entry for each statement."""
    progress: list[DdlProgress] = []
    for note in notes:
        if note.error is not None:
            progress.append(DdlProgress(str(note.table), error=note.error))
        for e in note.entries:
            verdicts = tuple(map(str, e.rulings))
            progress.append(
                DdlProgress(
                    str(note.table),
                    e.place,
                    e.statement,
                    verdicts,
                    note.instant,
                    undetermined=[str(one) for one in e.undetermined],
                )
            )
    return tuple(progress)


def count_records(report: TaskReport) -> None:
    """Add the records that became no row to the counts of the report's tables."""
    quarantined, filtered = Counter(q.source for q in report.quarantined), Counter[SourceTable | None]()
    for (source, _), count in report.filtered.items():
        filtered[source] += count
    for source, table in report.tables.items():
        counts = table.counts
        counts.quarantined, counts.filtered = quarantined[source], filtered[source]
        counts.read += counts.quarantined + counts.filtered


def loose_tables(report: TaskReport) -> list[TableProgress]:
    """The progress of tables that received only records that change no row."""
    counts: dict[SourceTable, list[int]] = {}
    for (source, _), count in report.filtered.items():
        if source is not None and source not in report.tables:
            counts.setdefault(source, [0, 0])[0] += count
    for q in report.quarantined:
        if q.source is not None and q.source not in report.tables:
            counts.setdefault(q.source, [0, 0])[1] += 1
    return [
        TableProgress(table=str(source), events_read=filtered + bad, filtered=filtered, quarantined=bad)
        for source, (filtered, bad) in counts.items()
    ]


def filtered_of_no_table(report: TaskReport) -> dict[str, int]:
    """Records of no table that rightly change nothing, by kind."""
    counts: dict[str, int] = {}
    for (source, kind), count in report.filtered.items():
        if source is None:
            counts[kind] = counts.get(kind, 0) + count
    return counts
