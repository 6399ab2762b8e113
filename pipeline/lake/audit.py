"""Is every record accounted for that a table's commits say they read? The table alone is asked.

For each commit of a stream: ``read = applied + superseded + filtered + quarantined``, no number is negative, at least
as many rows were written as records were applied (save where rows went by a TRUNCATE, or have no key), and the
positions it leaves are not below the offsets it covers. Over all commits: the offset ranges follow one upon the other.
Ranges twice covered are an error; what no commit covers is a gap, and may be idle time, for a batch that brings a table
nothing but records that change no row makes no commit there. Commits in the history count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pipeline.hudi.services.fsck import Check, Finding, OffsetKeys, Severity
from pipeline.hudi.services.fsck.evidence import Evidence
from pipeline.hudi.services.fsck.offsets_check import check_offsets
from pipeline.hudi.timeline.commit_metadata import CommitMetadata
from pipeline.lake.lake_table import COUNTS, OFFSETS, POSITIONS, STREAM, TRUNCATED
from pipeline.position.skipped import SKIPPED
from pipeline.storage import Storage
from pipeline.upsert.keyless import ROW_FIELD
from pipeline.upsert.route import Counts
from pipeline.upsert.truncates import NOTHING_TRUNCATED, Truncates

#: Where the commits of a stream say what they cover.
OFFSET_KEYS = OffsetKeys(stream=STREAM, offsets=OFFSETS, counts=COUNTS)
#: What may become of a record.
FATES = ("applied", "superseded", "filtered", "quarantined")
_ASK = "find out who wrote the commit"


@dataclass(frozen=True)
class AuditedCommit:
    """One commit of a stream. ``offsets``: topic -> partition -> (first, end); a replay of quarantined records covers
    none. ``rows``: upserts and deletes in its files."""

    instant: str
    stream: str
    counts: Counts
    offsets: Mapping[str, Mapping[str, tuple[int, int]]]
    rows: int
    archived: bool


@dataclass
class Audit:
    """What a table's commits say.

    Args:
        commits: those of streams, oldest first.
        foreign: how many commits other writers made.
        findings: errors first, then gaps.
    """

    commits: list[AuditedCommit] = field(default_factory=list)
    foreign: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def errors(self) -> list[Finding]:
        """What is wrong."""
        return [f for f in self.findings if f.severity is Severity.ERROR]

    @property
    def gaps(self) -> list[Finding]:
        """Offsets that no commit covers."""
        return [f for f in self.findings if f.check is Check.OFFSETS and "no commit covers" in f.what]

    def sums(self) -> dict[str, Counts]:
        """The counts of every stream."""
        found: dict[str, Counts] = {}
        for commit in self.commits:
            found.setdefault(commit.stream, Counts()).add(commit.counts)
        return found


def audit(storage: Storage) -> Audit:
    """Audit the table at ``storage``. Changes nothing. Raises ConfigError if there is none, StorageError."""
    evidence, found = Evidence.gather(storage), Audit()
    found.findings += evidence.findings
    for time, instant in evidence.unreadable.items():
        what = "the commit's file cannot be read, so nobody knows what it covers"
        found.findings.append(_error(what, time, "see binlake fsck", path=instant.path))
    keyed = evidence.config.record_key_fields != (ROW_FIELD,)
    truncated = NOTHING_TRUNCATED
    for time, body in sorted({**evidence.archived, **evidence.bodies}.items()):
        if STREAM not in body.extra:
            found.foreign += body.operation != "COMPACT" and not body.compacted
            continue
        try:
            commit = _commit(time, body, time in evidence.archived and time not in evidence.bodies)
            found.findings += _skipped(body, time)
            truncates = _truncates(body).news_to(truncated)
            truncated = truncated.merged(_truncates(body))
            found.findings += _check(commit, body, rows_count=keyed and not truncates)
        except (ValueError, TypeError, AttributeError) as error:
            found.findings.append(_error(f"the commit's counts cannot be read: {error}", time, _ASK))
            continue
        found.commits.append(commit)
    found.findings += check_offsets(evidence, OFFSET_KEYS)
    order = list(Severity)
    found.findings.sort(key=lambda f: order.index(f.severity))
    return found


def _truncates(body: CommitMetadata) -> Truncates:
    return Truncates.from_text(body.extra.get(TRUNCATED))


def _commit(time: str, body: CommitMetadata, archived: bool) -> AuditedCommit:
    said = json.loads(body.extra[COUNTS]) if COUNTS in body.extra else None
    if said is None:
        raise ValueError("there are none")
    if strange := [name for name, count in said.items() if type(count) is not int]:
        raise ValueError(f"{', '.join(strange)} is no number")
    offsets = {
        topic: {partition: (int(first), int(end)) for partition, (first, end) in parts.items()}
        for topic, parts in json.loads(body.extra.get(OFFSETS) or "{}").items()
    }
    rows = sum(stat.num_writes + stat.num_deletes for stat in body.stats)
    return AuditedCommit(time, body.extra[STREAM], Counts(**said), offsets, rows, archived)


def _check(commit: AuditedCommit, body: CommitMetadata, *, rows_count: bool) -> Iterator[Finding]:
    fates = {name: getattr(commit.counts, name) for name in FATES}
    text = " + ".join(f"{name} {count}" for name, count in fates.items())
    if sum(fates.values()) != commit.counts.read or min(fates.values()) < 0:
        what = f"the records are not accounted for: read {commit.counts.read}, but {text}"
        yield _error(what, commit.instant, "records were lost or counted twice: replay the offsets from Kafka")
    if rows_count and commit.counts.applied > commit.rows:
        what = f"{commit.counts.applied} records are said to be applied, but the files hold {commit.rows} rows"
        yield _error(what, commit.instant, "replay the offsets from Kafka")
    if POSITIONS not in body.extra and commit.archived:
        return  # the history may keep the newest alone
    positions = json.loads(body.extra.get(POSITIONS) or "{}").get(commit.stream, {})
    for topic, parts in commit.offsets.items():
        for partition, (_, end) in parts.items():
            if (stands := positions.get(topic, {}).get(partition)) is None or stands < end:
                what = f"{topic}/{partition}: the commit covers offsets below {end}, but leaves the position {stands}"
                yield _error(what, commit.instant, "the stream would deliver them again: find out who wrote the commit")


def _skipped(body: CommitMetadata, instant: str) -> Iterator[Finding]:
    """What was gone from Kafka and passed over on demand before this commit."""
    for topic, parts in json.loads(body.extra.get(SKIPPED) or "{}").items():
        for partition, gone in parts.items():
            for first, end in gone:
                what = f"{topic}/{partition}: offsets {first} to {end - 1} were gone from Kafka and left out on demand"
                advice = "a new snapshot of the table at a raised source.epoch brings its rows back"
                yield Finding(Severity.WARNING, Check.OFFSETS, what, instant=instant, advice=advice)


def _error(what: str, instant: str, advice: str, path: str = "") -> Finding:
    return Finding(Severity.ERROR, Check.OFFSETS, what, path, instant=instant, advice=advice)
