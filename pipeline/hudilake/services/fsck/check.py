"""All checks of a table, in one pass over its data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from hudilake.errors import UnsupportedError
from hudilake.services.fsck.content import other_contents, read_content, too_few_rows, wrong_bucket
from hudilake.services.fsck.evidence import GRACE_MS, Evidence
from hudilake.services.fsck.files_check import check_files
from hudilake.services.fsck.findings import Check, Finding, Report, Severity
from hudilake.services.fsck.index_check import IndexCheck
from hudilake.services.fsck.offsets_check import OffsetKeys, check_offsets
from hudilake.services.fsck.record_index_check import check_record_index
from hudilake.services.fsck.rings_check import check_rings
from hudilake.services.fsck.timeline_check import check_timeline
from hudilake.storage.base import Storage


def fsck(
    storage: Storage, offset_keys: OffsetKeys | None = None, *, with_data: bool = True, grace_ms: int = GRACE_MS
) -> Report:
    """Check the consistency of a table. Changes nothing.

    Args:
        storage: the table's root.
        offset_keys: the keys of its commits' offset ranges; None omits that check.
        with_data: read every data file; False checks only names, sizes and the timeline.
        grace_ms: how long a writer must be silent before its pending files count as dead.

    One file's rows are in memory at a time, and of a table with a record index the keys of some files. Raises
    ConfigError if there is no table, StorageError.
    """
    evidence = Evidence.gather(storage, grace_ms)
    pass_over = _DataPass(evidence)
    findings = [*evidence.findings, *check_timeline(evidence), *check_files(evidence), *check_rings(evidence)]
    findings += pass_over.index.open()
    findings += pass_over.index.listing()
    unknown = _unknown_schema(evidence)
    if unknown is not None:
        findings.append(unknown)
    elif with_data:
        findings += pass_over.run()
    if offset_keys is not None:
        findings += check_offsets(evidence, offset_keys)
    order = list(Severity)
    findings.sort(key=lambda f: order.index(f.severity))
    unique = tuple(dict.fromkeys(findings))
    return Report(evidence.config.name, unique, pass_over.files, pass_over.bytes_read)


def _unknown_schema(evidence: Evidence) -> Finding | None:
    """A finding if the rows cannot be checked: the table's columns are unknown, or binlake cannot read them."""
    try:
        if evidence.schema is not None:
            return None
        what = "the rows are not checked: no readable commit has the table's schema"
    except UnsupportedError as error:
        what = f"the rows are not checked: {error.what}"
    return Finding(Severity.INFO, Check.CONTENT, what)


class _DataPass:
    """Reads every visible file once."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.index = IndexCheck(evidence)
        self.files = self.bytes_read = 0

    def run(self) -> Iterator[Finding]:
        """Each file's content and its entries in the metadata table, partition by partition."""
        files = sorted(self.evidence.visible, key=lambda file: file.partition_path)
        for path, group in groupby(files, key=lambda file: file.partition_path):
            members = list(group)
            yield from self.index.enter(path, members)
            for file in members:
                content = read_content(self.evidence.storage, file)
                self.files += 1
                self.bytes_read += content.size
                yield from content.findings
                yield from too_few_rows(self.evidence, file, content)
                yield from other_contents(self.evidence, file, content)
                if (file.partition_path, file.name.file_id) not in self.evidence.replaced:
                    yield from wrong_bucket(self.evidence.config, file, content)
                yield from self.index.compare(file, content)
        if self.index.reader is not None:
            yield from check_record_index(self.evidence, self.index.reader)
