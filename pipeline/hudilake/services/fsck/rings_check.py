"""The hash rings of a table with consistent hashing: their files, and the file groups that rows are in."""

from __future__ import annotations

from collections.abc import Iterator

from hudilake.errors import CorruptDataError
from hudilake.format.definition.bucketing import bucket_or_none
from hudilake.format.definition.consistent import (
    COMMIT_SUFFIX,
    FIRST_INSTANT,
    HASHING_PATH,
    META_SUFFIX,
    HashingMetadata,
    hashing_file,
)
from hudilake.services.fsck.evidence import Evidence
from hudilake.services.fsck.findings import Check, Finding, Severity
from hudilake.table.rings import has_completed


def check_rings(evidence: Evidence) -> Iterator[Finding]:
    """Findings about hashing metadata; none for a table without. Raises StorageError."""
    if not evidence.config.kind.hashes:
        return
    yield from _files(evidence)
    yield from _groups(evidence)


def _files(evidence: Evidence) -> Iterator[Finding]:
    """Unreadable files, and files of instants that nobody knows: a Hudi writer may count those."""
    for path in sorted(evidence.files):
        if not path.startswith(f"{HASHING_PATH}/") or not path.endswith(META_SUFFIX):
            continue
        instant = path.rpartition("/")[2].removesuffix(META_SUFFIX)
        try:
            HashingMetadata.from_bytes(evidence.storage.read(path), path)
        except CorruptDataError as error:
            yield Finding(Severity.ERROR, Check.FILES, error.what, path, instant=instant, advice=error.do_next or "")
        marked = path.removesuffix(META_SUFFIX) + COMMIT_SUFFIX in evidence.files
        unknown = evidence.timeline.find(instant) is None and not has_completed(evidence.timeline, instant)
        if instant != FIRST_INSTANT and not marked and unknown:
            what = "hashing metadata of a resize that the timeline does not know: a Hudi writer may count it"
            advice = "stop all writers, then delete the file"
            yield Finding(Severity.ERROR, Check.FILES, what, path, instant=instant, advice=advice)


def _groups(evidence: Evidence) -> Iterator[Finding]:
    """Rows in file groups that are no nodes, and partitions whose ring a Hudi writer would make anew."""
    rows = {(file.partition_path, file.name.file_id): file for file in evidence.visible}
    for place, file in sorted(rows.items()):
        if place not in evidence.replaced and bucket_or_none(evidence.config.bucketing, *place) is None:
            what = f"file group {place[1]} is no node of its partition's hash ring: updates do not find its rows"
            advice = "stop the writer that takes other buckets; load the partition again under a new table path"
            yield Finding(Severity.ERROR, Check.FILES, what, file.path, instant=file.name.instant, advice=advice)
    for path in sorted({path for path, _ in rows}):
        if hashing_file(path, FIRST_INSTANT) not in evidence.files and path not in evidence.config.rings:
            what = "a partition has no hashing metadata: a Hudi writer would take its own number of buckets"
            yield Finding(
                Severity.WARNING, Check.FILES, what, path or ".", advice="write to the partition once with binlake"
            )
