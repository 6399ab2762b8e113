"""What must hold of a table that a stream has written, however often the stream was killed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from binlake.tables.audit import OFFSET_KEYS
from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.format.timeline.instant import CLEAN, COMMIT, COMPACTION, DELTA_COMMIT
from hudilake.services.fsck import Finding, Severity, fsck
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable

#: Whether the record at an offset of a topic partition changes no row, so that no commit need cover it.
ChangesNothing = Callable[[str, int, int], bool]


def check_offsets(path: Path, changes_nothing: ChangesNothing | None = None) -> None:
    """The commits' offset ranges neither overlap nor leave a gap, and no commit or rollback is pending."""
    table = HudiTable.open(open_storage(str(path)))
    left = [i.file_name for i in table.timeline.pending() if i.action not in (COMPACTION, CLEAN)]
    assert not left, f"{path}: pending is {left}"
    reached: dict[tuple[str, int], int] = {}
    for instant, topic, partition, start, end in committed_ranges(table):
        before = reached.get((topic, partition), 0)
        gap = [o for o in range(before, start) if changes_nothing is None or not changes_nothing(topic, partition, o)]
        assert start >= before, f"{path}: {instant} has {topic}/{partition} from {start}; {before} was reached before"
        assert not gap, f"{path}: no commit has the offsets {gap[:5]} of {topic}/{partition}; {instant} goes on after"
        reached[(topic, partition)] = end


def committed_ranges(table: HudiTable) -> Iterator[tuple[str, str, int, int, int]]:
    """(instant, topic, partition, start, end) of all commits, archived ones too, oldest first."""
    timeline = table.timeline
    bodies = {
        old.requested_time: CommitMetadata.from_bytes(old.metadata, old.requested_time)
        for old in timeline.history().commits()
    }
    bodies |= {i.requested_time: timeline.commit_metadata(i) for i in timeline.completed_actions({DELTA_COMMIT})}
    for instant, body in sorted(bodies.items()):
        for topic, parts in json.loads(body.extra.get("binlake.offsets", "{}")).items():
            for partition, (start, end) in parts.items():
                yield instant, topic, int(partition), start, end


def check_table(path: Path) -> None:
    """It was compacted, and files, rows and metadata table agree."""
    storage = open_storage(str(path))
    assert HudiTable.open(storage).timeline.completed_actions({COMMIT})
    assert errors_in(path) == []


def errors_in(path: Path) -> list[str]:
    """What a check of the table calls an error, with nobody at work on it."""
    findings = fsck(open_storage(str(path)), OFFSET_KEYS, grace_ms=0).findings
    return [_told(finding) for finding in findings if finding.severity == Severity.ERROR]


def _told(finding: Finding) -> str:
    return f"{finding.what} ({finding.where})" if finding.where else finding.what
