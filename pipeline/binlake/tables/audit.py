"""Checks that a table's commits account for every record that they read. Only the table itself is examined.

For each commit of a stream: ``read = applied + superseded + filtered + quarantined``, no count is negative, at least as
many rows were written as records were applied (except where a TRUNCATE removed rows, the table has no key, or its
writer makes one row of several records), and the positions are not below the offsets that the commit covers. Over all
commits: the offset ranges are consecutive. A range that is covered twice is an error. Offsets that no commit covers are
a gap. A gap may be harmless: a batch makes no commit to a table for which it has only records that change no row.
Commits in the history are included.

On demand every file that readers use is compared with what its commit recorded of its rows (``fsck.content``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from binlake.position.record_reader import RecordKey, RecordReader
from binlake.rows.upsert.outcomes import OUTCOMES
from binlake.rows.upsert.route import Counts
from binlake.rows.upsert.target import is_keyless
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED
from binlake.source.offsets import Ranges
from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.services.fsck import Check, ContentsReport, Finding, OffsetKeys, Severity, check_contents
from hudilake.services.fsck.evidence import Evidence
from hudilake.services.fsck.offsets_check import check_offsets
from hudilake.storage import Storage
from hudilake.wording import counted

#: The keys under which the commits of a stream record the offsets they cover.
OFFSET_KEYS = OffsetKeys(
    stream=RecordKey.STREAM.value,
    offsets=RecordKey.OFFSETS.value,
    counts=RecordKey.COUNTS.value,
    repeated=RecordKey.REPEATED.value,
)
#: What a compaction and a clustering say of themselves, of binlake or Hudi: they have no record and change no row.
_NO_ROWS_CHANGED = ("COMPACT", "CLUSTER")
_ASK = "find out who wrote the commit"


@dataclass(frozen=True)
class AuditedCommit:
    """One commit of a stream. ``ranges``: the offsets it covers; a replay of quarantined records covers none.
    ``rows``: upserts and deletes in its files."""

    instant: str
    stream: str
    counts: Counts
    ranges: Ranges
    rows: int
    archived: bool


@dataclass
class Audit:
    """The result of an audit.

    Args:
        commits: the commits of streams, oldest first.
        foreign: the number of commits of other writers.
        findings: errors first, then gaps.
        contents: what became of the files; None if they were not read.
    """

    commits: list[AuditedCommit] = field(default_factory=list)
    foreign: int = 0
    findings: list[Finding] = field(default_factory=list)
    contents: ContentsReport | None = None

    @property
    def errors(self) -> list[Finding]:
        """The findings that are errors."""
        return [f for f in self.findings if f.severity is Severity.ERROR]

    @property
    def gaps(self) -> list[Finding]:
        """The findings about offsets that no commit covers."""
        return [f for f in self.findings if f.check is Check.OFFSETS and "no commit covers" in f.what]

    def add(self, findings: Iterable[Finding]) -> None:
        """Add findings; errors stay first."""
        order = list(Severity)
        self.findings = sorted([*self.findings, *findings], key=lambda one: order.index(one.severity))

    def sums(self) -> dict[str, Counts]:
        """The counts of every stream."""
        totals: dict[str, Counts] = {}
        for commit in self.commits:
            totals.setdefault(commit.stream, Counts()).add(commit.counts)
        return totals


def audit(storage: Storage, *, contents: bool = False) -> Audit:
    """Audit the table at ``storage``. Changes nothing. Raises ConfigError if there is none, StorageError.

    ``contents``: whether every file is read and compared with what its commit recorded.
    """
    evidence, report = Evidence.gather(storage), Audit()
    report.findings += evidence.findings
    for time, instant in evidence.unreadable.items():
        what = "the commit's file cannot be read, so nobody knows what it covers"
        report.findings.append(_error(what, time, "see binlake fsck", path=instant.path))
    kind, keyed = evidence.config.kind, not is_keyless(evidence.config)
    # Base files hold rows of other commits too, and nothing of rows that came late. Where keys are looked up, a delete
    # of an unknown key goes into no file.
    alone = keyed and not (evidence.config.merging.by_writer or kind.rewrites)
    truncated = NOTHING_TRUNCATED
    for time, body in sorted({**evidence.archived, **evidence.bodies}.items()):
        record = RecordReader.of_commit(body.extra)
        if record.stream is None:
            report.foreign += body.operation not in _NO_ROWS_CHANGED and not body.compacted
            continue
        try:
            commit = _commit(time, body, record, time in evidence.archived and time not in evidence.bodies)
            report.findings += _skipped(record, time)
            truncates = record.truncates.news_to(truncated)
            truncated = truncated.merged(record.truncates)
            report.findings += _check(commit, record, rows_count=alone and not truncates)
        except (ValueError, TypeError, AttributeError) as error:
            report.findings.append(_error(f"the commit's counts cannot be read: {error}", time, _ASK))
            continue
        report.commits.append(commit)
    report.findings += check_offsets(evidence, OFFSET_KEYS)
    if contents:
        report.contents = check_contents(evidence)
    report.add(report.contents.findings if report.contents is not None else ())
    return report


def _commit(time: str, body: CommitMetadata, record: RecordReader, archived: bool) -> AuditedCommit:
    counts = record.counts
    if counts is None:
        raise ValueError("there are none")
    if strange := [name for name, count in vars(counts).items() if type(count) is not int]:
        raise ValueError(f"{', '.join(strange)} is no number")
    rows = sum(stat.num_writes + stat.num_deletes for stat in body.stats)
    return AuditedCommit(time, record.stream or "", counts, record.ranges, rows, archived)


def _check(commit: AuditedCommit, record: RecordReader, *, rows_count: bool) -> Iterator[Finding]:
    outcomes = {name: getattr(commit.counts, name) for name in OUTCOMES}
    text = " + ".join(f"{name} {count}" for name, count in outcomes.items())
    if sum(outcomes.values()) != commit.counts.read or min(outcomes.values()) < 0:
        what = f"the records are not accounted for: read {commit.counts.read}, but {text}"
        yield _error(what, commit.instant, "records were lost or counted twice: replay the offsets from Kafka")
    if rows_count and commit.counts.applied > commit.rows:
        applied = counted(commit.counts.applied, "record", "is", "are")
        what = f"{applied} said to be applied, but the files hold {counted(commit.rows, 'row')}"
        yield _error(what, commit.instant, "replay the offsets from Kafka")
    if record.positions is None and commit.archived:
        return  # the history may keep only the newest positions
    positions = record.positions_of(commit.stream)
    for r in commit.ranges:
        if not positions.knows(r.topic, r.partition) or positions.at(r.topic, r.partition) < r.end:
            stands = positions.get(r.topic, {}).get(r.partition)
            what = f"{r.topic}/{r.partition}: the commit covers offsets below {r.end}, but leaves the position {stands}"
            yield _error(what, commit.instant, "the stream would deliver them again: find out who wrote the commit")


def _skipped(record: RecordReader, instant: str) -> Iterator[Finding]:
    """Findings about offsets that Kafka had deleted and that were skipped on demand before this commit."""
    for r in record.skipped:
        what = f"{r.topic}/{r.partition}: offsets {r.start} to {r.end - 1} were gone from Kafka and left out on demand"
        advice = "a new snapshot of the table at a raised source.epoch brings its rows back"
        yield Finding(Severity.WARNING, Check.OFFSETS, what, instant=instant, advice=advice)


def _error(what: str, instant: str, advice: str, path: str = "") -> Finding:
    return Finding(Severity.ERROR, Check.OFFSETS, what, path, instant=instant, advice=advice)
