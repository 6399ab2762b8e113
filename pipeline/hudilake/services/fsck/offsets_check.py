"""Checks the offset ranges of a stream's commits: it reports overlaps and gaps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.services.fsck.evidence import Evidence
from hudilake.services.fsck.findings import Check, Finding, Severity


@dataclass(frozen=True, slots=True)
class OffsetKeys:
    """Names of extraMetadata: the stream, its ranges as ``{"topic": {"0": [start, end]}}`` (end exclusive), its
    counts, whose ``already_applied`` is the number of events of the ranges that an earlier commit had, and the parts of
    the ranges that the table had before, of which events may be gone from Kafka since (``repeated``)."""

    stream: str
    offsets: str
    counts: str
    already_applied: str = "already_applied"
    repeated: str = ""


@dataclass(frozen=True, slots=True, order=True)
class _Range:
    start: int
    end: int
    instant: str
    repeated: int
    had_until: int = 0


def check_offsets(evidence: Evidence, keys: OffsetKeys) -> Iterator[Finding]:
    """Overlaps and gaps, per stream and topic partition, archived commits included.

    A batch after a crash may repeat events of an earlier commit; its metadata has their number, and this is no error. A
    gap may be idle time: a table without events makes no commit.
    """
    ranges: dict[tuple[str, str, str], list[_Range]] = {}
    for instant, body in sorted({**evidence.archived, **evidence.bodies}.items()):
        try:
            _take(ranges, instant, body, keys)
        except (ValueError, TypeError, AttributeError) as error:
            what = f"the commit's offsets cannot be read: {error}"
            yield Finding(Severity.ERROR, Check.OFFSETS, what, instant=instant, advice="find the writer of the commit")
    for (stream, topic, partition), stream_ranges in sorted(ranges.items()):
        yield from _compare(f"stream {stream}, {topic}/{partition}", sorted(stream_ranges))


def _take(
    ranges: dict[tuple[str, str, str], list[_Range]], instant: str, body: CommitMetadata, keys: OffsetKeys
) -> None:
    text = body.extra.get(keys.offsets)
    if text is None:
        return
    repeated = int(json.loads(body.extra.get(keys.counts) or "{}").get(keys.already_applied, 0))
    had = json.loads(body.extra.get(keys.repeated) or "{}")
    for topic, parts in json.loads(text).items():
        for partition, (start, end) in parts.items():
            partition_key = body.extra.get(keys.stream, ""), topic, partition
            had_until = int(had.get(topic, {}).get(partition, [0, 0])[1])
            ranges.setdefault(partition_key, []).append(_Range(int(start), int(end), instant, repeated, had_until))


def _compare(label: str, ranges: list[_Range]) -> Iterator[Finding]:
    reached = ranges[0]
    for item in ranges[1:]:
        if item.start > reached.end:
            what = f"{label}: no commit covers offsets {reached.end} to {item.start - 1}"
            advice = "none needed if no event of this table is there; the offsets' counts do not tell"
            yield Finding(Severity.INFO, Check.OFFSETS, what, instant=item.instant, advice=advice)
        elif item.start < min(reached.end, item.end):
            later = max(item, reached, key=lambda r: r.instant)
            twice = f"{item.start} to {min(reached.end, item.end) - 1}"
            explained = later.repeated > 0 or later.had_until >= min(reached.end, item.end)
            yield Finding(
                Severity.INFO if explained else Severity.ERROR,
                Check.OFFSETS,
                f"{label}: offsets {twice} are covered by the commits {reached.instant} and {item.instant}"
                + (f"; the later one skipped {later.repeated} events that were applied before" if explained else ""),
                instant=later.instant,
                advice=""
                if explained
                else "two runs of the stream wrote at once: stop one; rows with keys are correct",
            )
        if item.end > reached.end:
            reached = item
